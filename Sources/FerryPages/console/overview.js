// What is wrong, the accounts, the last ten minutes, the bridges.

import { bdi, h, plain, setAttribute, setText, StateMark } from './dom.js';
import { addresses, byState, remedy } from './health.js';
import { BridgeMap } from './map.js';
import { Plot } from './plot.js';
import { openTest } from './probe.js';
import { age, t } from './vocabulary.js';

/** Maps drawn before somebody asks for all. */
const FIRST = 12;

export class Overview {
  #context;
  #troubles = h('ul', { class: 'troubles' });
  #accounts = h('ul', { class: 'accounts' });
  #bridges = h('div', { class: 'bridges' });
  #all = h('button', { type: 'button', class: 'quiet', hidden: true });
  #cards = new Map();
  #maps = new Map();
  #showsAll = false;
  #received = new Plot(t('received'), (value) => t('perMinute', value));
  #sent = new Plot(t('sent'), (value) => t('perMinute', value));
  #lag = new Plot(t('lag'), age);

  constructor(context) {
    this.#context = context;
    this.#all.addEventListener('click', () => {
      this.#showsAll = true;
      context.refresh();
    });
    this.element = h('div', { class: 'overview' }, this.#troubles,
      h('section', {}, h('h2', {}, t('accounts')), this.#accounts),
      h('section', {}, h('h2', {}, t('traffic')),
        h('div', { class: 'plots' }, this.#received.element, this.#sent.element, this.#lag.element)),
      h('section', {}, h('h2', {}, t('bridges')), this.#bridges, this.#all));
  }

  update(health) {
    this.#showTroubles(health);
    this.#showAccounts(health);
    const { history } = this.#context;
    this.#received.set(history.perMinute(history.received()));
    this.#sent.set(history.perMinute(history.sent()));
    this.#lag.set(history.lag());
    this.#showBridges(health);
  }

  #showTroubles(health) {
    // What somebody is at further down must not move: the list then keeps its height and scrolls.
    const isHeld = this.element.contains(document.activeElement) && !this.#troubles.contains(document.activeElement);
    this.#troubles.style.height = isHeld ? `${this.#troubles.offsetHeight}px` : '';
    if (this.#troubles.contains(document.activeElement)) return;
    const troubles = health.troubles.slice(0, 8);
    const known = troubles.map((each) => `${each.key} ${each.state} ${each.text} ${each.more}`).join('\n');
    if (this.#troubles.dataset.known === known) return;
    this.#troubles.dataset.known = known;
    this.#troubles.replaceChildren(...troubles.map((trouble) =>
      h('li', { class: trouble.state }, new StateMark().set(trouble.state, t(trouble.state)).element,
        h('a', { href: this.#context.address(trouble.link), click: this.#context.follow }, bdi(trouble.text)),
        trouble.more && h('span', { class: 'more' }, bdi(trouble.more)))));
  }

  #showAccounts(health) {
    const isHeld = this.#accounts.contains(document.activeElement);
    const accounts = [...health.status.accounts];
    if (!isHeld) {
      accounts.sort((one, other) => byState(health.ofAccount(one), health.ofAccount(other)) || one.name.localeCompare(other.name));
    }
    const names = new Set(accounts.map((each) => each.name));
    for (const [name, card] of this.#cards) {
      if (names.has(name)) continue;
      card.element.remove();
      this.#cards.delete(name);
    }
    accounts.forEach((account, index) => {
      if (!this.#cards.has(account.name)) this.#cards.set(account.name, new AccountCard(account));
      const card = this.#cards.get(account.name);
      card.update(account, health, this.#context);
      if (!card.element.isConnected || (!isHeld && this.#accounts.children[index] !== card.element)) {
        this.#accounts.insertBefore(card.element, this.#accounts.children[index] ?? null);
      }
    });
  }

  #showBridges(health) {
    const isHeld = this.#bridges.contains(document.activeElement);
    const bridges = health.status.bridges.map((bridge) => ({ bridge, state: health.ofBridge(bridge) }));
    bridges.sort((one, other) => byState(one.state, other.state) || one.bridge.name.localeCompare(other.bridge.name));
    const known = new Map(bridges.map(({ bridge }) => [bridge.name, JSON.stringify(bridge)]));
    for (const [name, map] of this.#maps) {
      if (known.get(name) === map.topology) continue;
      map.element.remove();
      this.#maps.delete(name);
    }
    const shown = this.#showsAll ? bridges : bridges.slice(0, FIRST);
    const wanted = new Set(shown.map(({ bridge }) => bridge.name));
    for (const [name, map] of this.#maps) map.element.hidden = !isHeld && !wanted.has(name);
    shown.forEach(({ bridge }, index) => {
      if (!this.#maps.has(bridge.name)) {
        const map = new BridgeMap(bridge, { test: this.#context.mayAct && ((each) => openTest(each, this.#context)) });
        map.topology = known.get(bridge.name);
        this.#maps.set(bridge.name, map);
      }
      const map = this.#maps.get(bridge.name);
      if (!map.element.isConnected || (!isHeld && this.#bridges.children[index] !== map.element)) {
        this.#bridges.insertBefore(map.element, this.#bridges.children[index] ?? null);
      }
    });
    for (const map of this.#maps.values()) if (!map.element.hidden) map.update(health);
    this.#all.hidden = this.#showsAll || bridges.length <= FIRST;
    setText(this.#all, t('showAll', bridges.length));
    this.#bridges.classList.toggle('one', shown.length === 1 && addresses(shown[0].bridge).length > 2);
  }
}

/** An account: its state and since when, last in and out, last error and what to do about it. */
class AccountCard {
  #state = new StateMark();
  #since = h('span', { class: 'since' });
  #in = h('dd');
  #out = h('dd');
  #error = h('p', { class: 'reason' });
  #remedy = h('p', { class: 'remedy' });
  #received = new Plot(t('received'), (value) => t('perMinute', value), { isSmall: true });
  #sent = new Plot(t('sent'), (value) => t('perMinute', value), { isSmall: true });

  constructor(account) {
    this.element = h('li', { class: 'card account', 'data-account': account.name },
      h('header', {}, h('h3', {}, bdi(account.name)), h('span', { class: 'provider' }, plain(account.provider ?? '')),
        this.#state.element, this.#since),
      h('dl', {}, h('div', {}, h('dt', {}, t('lastIn')), this.#in, h('dd', { class: 'rate' }, this.#received.element)),
        h('div', {}, h('dt', {}, t('lastOut')), this.#out, h('dd', { class: 'rate' }, this.#sent.element))),
      this.#error, this.#remedy);
  }

  update(account, health, { time, history }) {
    const state = health.ofAccount(account);
    this.#state.set(state, health.wordOfAccount(account));
    setAttribute(this.element, 'class', `card account ${state}`);
    setText(this.#since, account.since === undefined ? '' : t('since', age(health.now - account.since)));
    time(this.#in, account.lastIn, health, account.state === 'idle' ? t('never') : t('notYet'));
    time(this.#out, account.lastOut, health, t('notYet'));
    const isWrong = state !== 'ok';
    const text = isWrong ? account.reason ?? account.lastError : account.lastError;
    const when = account.lastErrorAt === undefined ? '' : ` (${t('ago', age(health.now - account.lastErrorAt))})`;
    setText(this.#error, text ? `${t('lastError')}${isWrong && account.reason ? '' : when}: ${plain(text)}` : '');
    setText(this.#remedy, isWrong && !health.isStale ? remedy(account) : '');
    const series = history.account(account.name);
    this.#received.set(history.perMinute(series.received));
    this.#sent.set(history.perMinute(series.sent));
  }
}
