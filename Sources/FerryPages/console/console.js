// The console: signing in, the views and their addresses, the first line, times.

import { h, plain, say, setText, shape, openDialog } from './dom.js';
import { DeadLetters } from './dead.js';
import { Events } from './events.js';
import { Health, worst } from './health.js';
import { Lanes } from './lanes.js';
import { Overview } from './overview.js';
import { History } from './plot.js';
import { Refusal, Service } from './service.js';
import { Settings } from './settings.js';
import { age, lang, locale, number, t } from './vocabulary.js';

const VIEWS = { overview: Overview, lanes: Lanes, events: Events, dead: DeadLetters, settings: Settings };
/** What of an address belongs to a view. */
const PARTS = ['view', 'id', 'bridge', 'to', 'text'];
const TOKEN = 'ferry console token';
const UTC = 'ferry console utc';
const find = (selector) => document.querySelector(selector);

document.documentElement.lang = lang;
document.title = t('title');
for (const element of document.querySelectorAll('[data-t]')) element.textContent = t(element.dataset.t);
for (const element of document.querySelectorAll('[data-t-label]')) element.setAttribute('aria-label', t(element.dataset.tLabel));

// MARK: Times

let isUTC = localStorage.getItem(UTC) === 'yes';
const formats = new Map();

function format(isExact) {
  const key = `${isUTC} ${isExact}`;
  if (!formats.has(key)) {
    formats.set(key, new Intl.DateTimeFormat(locale, {
      timeZone: isUTC ? 'UTC' : undefined, month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit',
      hourCycle: 'h23', fractionalSecondDigits: isExact ? 3 : undefined,
    }));
  }
  return formats.get(key);
}

function writeTime(element) {
  const date = new Date(Number(element.dataset.at));
  setText(element, format(element.dataset.exact === 'yes').format(date));
}

/** A point in time, which follows the switch between local time and UTC. */
function clock(at, { isExact = false } = {}) {
  if (!Number.isFinite(at) || Math.abs(at) > 8.64e15) return h('span', {}, '?');
  const element = h('time', { datetime: new Date(at).toISOString(), title: new Date(at).toISOString(), 'data-at': at, 'data-exact': isExact ? 'yes' : 'no' });
  writeTime(element);
  return element;
}

/** Fills a place with how long ago something was, and when. */
function time(place, at, health, otherwise) {
  if (at === undefined) return setText(place, otherwise);
  let [element, ago] = place.children;
  if (element?.dataset.at !== String(at)) {
    element = clock(at);
    ago = h('span', { class: 'ago' });
    place.replaceChildren(element, ' ', ago);
  }
  setText(ago, t('ago', age(health.now - at)));
}

// MARK: Signed in

class Console {
  #service;
  #history = new History();
  #views = new Map();
  #view;
  #place;
  #tabs = new Map();
  #context;

  constructor(service, session) {
    this.#service = service;
    this.#context = {
      service, history: this.#history, mayAct: session.mayAct, clock, time,
      address: (place) => this.#address(place), go: (place, options) => this.go(place, options),
      still: (change) => this.#holdingStill(change), follow: (event) => this.#follow(event), refresh: () => this.#render(), fail: (error) => this.#fail(error),
    };
    service.on.status = () => this.#render();
    service.on.refused = (refusal) => this.#leave(refusal.message);
    find('.foot').replaceChildren(h('span', {}, t('version', plain(session.version))), ...(session.mayAct ? [] : [h('span', { class: 'tag' }, t('readOnly'))]));
    this.#makeTabs();
    find('.sign-out').onclick = () => this.#leave();
    const zone = find('.zone');
    const showZone = () => setText(zone, t(isUTC ? 'utc' : 'local'));
    zone.onclick = () => {
      isUTC = !isUTC;
      localStorage.setItem(UTC, isUTC ? 'yes' : 'no');
      showZone();
      for (const element of document.querySelectorAll('time[data-at]')) writeTime(element);
    };
    showZone();
    this.#back = () => this.#open();
    addEventListener('popstate', this.#back);
    // Ages grow, and silence becomes staleness, without any news.
    this.#timer = setInterval(() => this.#service.silence > 1500 && this.#render(), 1000);
    find('#app').hidden = false;
  }

  #back;
  #timer;

  async start() {
    this.#open();
    this.#service.follow();
    await this.#loadHistory();
  }

  async #loadHistory() {
    this.#isLoadingHistory = true;
    try {
      await this.#history.load(this.#service);
    } catch {
      // The next status asks for it again.
    }
    this.#isLoadingHistory = false;
    this.#render();
  }

  #isLoadingHistory = false;
  #hasSaid = false;

  #leave(problem) {
    clearInterval(this.#timer);
    removeEventListener('popstate', this.#back);
    this.#service.stop();
    sessionStorage.removeItem(TOKEN);
    for (const dialog of document.querySelectorAll('dialog')) dialog.close();
    find('#app').hidden = true;
    find('#view').replaceChildren();
    find('.tabs').replaceChildren();
    askForToken(problem);
  }

  #fail(error) {
    if (error instanceof Refusal && error.status === 401) return;
    const close = h('button', { type: 'button', class: 'primary' }, t('close'));
    const text = error instanceof Refusal ? error.message : t('noServer');
    const dialog = openDialog([h('p', { class: 'reason' }, plain(text, 1000)), h('div', { class: 'answers' }, close)], t('failed'), 'question');
    close.addEventListener('click', () => dialog.close());
  }

  // MARK: Views and addresses

  #makeTabs() {
    for (const name of Object.keys(VIEWS)) {
      const count = name === 'dead' && h('span', { class: 'count', hidden: true });
      const link = h('a', { href: this.#address({ view: name }), click: (event) => this.#follow(event) }, t(name), count);
      this.#tabs.set(name, { link, count });
      find('.tabs').append(link);
    }
  }

  #address(place) {
    const query = new URLSearchParams(location.search);
    for (const part of PARTS) query.delete(part);
    for (const part of PARTS) if (place[part] && !(part === 'view' && place[part] === 'overview')) query.set(part, place[part]);
    const text = query.toString();
    return text ? `/?${text}` : '/';
  }

  #follow(event) {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button > 0) return;
    event.preventDefault();
    history.pushState(null, '', event.currentTarget.getAttribute('href'));
    this.#open();
  }

  go(place, { isSame = false } = {}) {
    const address = this.#address(place);
    if (isSame) history.replaceState(null, '', address);
    else history.pushState(null, '', address);
    this.#open();
  }

  #open() {
    const query = new URLSearchParams(location.search);
    const place = Object.fromEntries(PARTS.map((part) => [part, query.get(part) ?? undefined]));
    const name = Object.hasOwn(VIEWS, place.view ?? '') ? place.view : 'overview';
    const isOther = name !== this.#view;
    this.#view = name;
    this.#place = place;
    if (!this.#views.has(name)) this.#views.set(name, new VIEWS[name](this.#context));
    const view = this.#views.get(name);
    if (isOther) {
      find('#view').replaceChildren(view.element);
      scrollTo(0, 0);
    }
    for (const [each, { link }] of this.#tabs) {
      if (each === name) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    view.open?.(place);
    this.#render();
  }

  // MARK: Showing

  #render() {
    const health = new Health(this.#service);
    if (this.#service.status && !this.#history.take(this.#service.status, health.now) && !this.#isLoadingHistory) this.#loadHistory();
    this.#showVerdict(health);
    const { count } = this.#tabs.get('dead');
    count.hidden = !health.status.dead;
    setText(count, number(health.status.dead));
    this.#holdingStill(() => this.#views.get(this.#view)?.update(health));
  }

  /** What somebody is at stays where it is in the window, whatever grows above it. */
  #holdingStill(change) {
    const focused = document.activeElement;
    const isAt = find('#view').contains(focused) && focused !== find('#view');
    const before = isAt ? focused.getBoundingClientRect().top : 0;
    change();
    if (!isAt || document.activeElement !== focused) return;
    const moved = focused.getBoundingClientRect().top - before;
    if (Math.abs(moved) >= 1) scrollBy(0, moved);
  }

  #showVerdict(health) {
    const errors = health.troubles.filter((each) => each.state === 'error').length;
    const warnings = health.troubles.length - errors;
    const state = health.isStale ? 'unknown' : worst(health.troubles.map((each) => each.state));
    const silence = this.#service.heard ? this.#service.silence : undefined;
    const text = health.isStale ? t('noData') : state === 'ok' ? t('allWell') : t('troubles', errors, warnings);
    const verdict = find('.verdict');
    if (verdict.dataset.said !== `${state} ${text}`) {
      // Not when it loads: only what changes then.
      if (this.#hasSaid) say(text);
      this.#hasSaid = this.#service.heard > 0;
      verdict.dataset.said = `${state} ${text}`;
      verdict.className = `verdict ${state}`;
      verdict.replaceChildren(shape(state), h('span', {}, text));
      document.title = `${state === 'ok' ? '' : `${text} – `}${t('title')}`;
    }
    const fresh = find('.fresh');
    setText(fresh, health.isStale ? (silence === undefined ? t('loading') : t('stale', age(silence))) : `${t('fresh')} · ${location.host}`);
    fresh.classList.toggle('is-stale', health.isStale);
  }
}

// MARK: Signing in

function askForToken(problem = '') {
  const error = h('p', { class: 'error', role: 'alert' }, plain(problem));
  const input = h('input', { name: 'token', type: 'password', required: true, autocomplete: 'current-password', 'aria-describedby': 'token-hint' });
  const button = h('button', { class: 'primary' }, t('signIn'));
  const form = h('form', {}, h('img', { src: '/console/console.svg', alt: '', width: '56', height: '56' }),
    h('h1', {}, t('signInTo', location.host)), h('label', {}, h('span', {}, t('token')), input),
    h('p', { id: 'token-hint', class: 'hint' }, t('tokenHint')), error, button);
  const screen = h('main', { class: 'sign-in' }, form);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    const refusal = await signIn(input.value.trim());
    button.disabled = false;
    if (refusal === undefined) return screen.remove();
    error.textContent = refusal;
    input.select();
  });
  find('.sign-in')?.remove();
  document.body.append(screen);
  input.focus();
}

/** Why it failed, or nothing. */
async function signIn(token) {
  const service = new Service(token);
  try {
    const session = await service.get('session');
    sessionStorage.setItem(TOKEN, token);
    new Console(service, session).start();
    return undefined;
  } catch (error) {
    return error instanceof Refusal ? error.message : t('noServer');
  }
}

/** A token in the address leaves it at once. */
function givenToken() {
  const address = new URL(location.href);
  const hash = new URLSearchParams(address.hash.slice(1));
  const given = hash.get('token') ?? address.searchParams.get('token');
  if (given === null) return sessionStorage.getItem(TOKEN);
  address.searchParams.delete('token');
  address.hash = '';
  history.replaceState(null, '', address);
  return given;
}

const token = givenToken();
const problem = token ? await signIn(token) : '';
if (problem !== undefined) askForToken(problem);
