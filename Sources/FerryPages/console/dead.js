// Deliveries that failed for good, and what a person decides about them.

import { bdi, h, openDialog, plain, say, setText } from './dom.js';
import { Table } from './table.js';
import { number, t, words } from './vocabulary.js';

const PAGE = 50;

export class DeadLetters {
  #context;
  #table;
  #filter = {};
  #letters = [];
  #selected = new Set();
  #count = 0;
  #newest = 0;
  #lastCount;
  #choices;
  #isLoading = false;
  #form;
  #chip = h('button', { type: 'button', class: 'chip', hidden: true });
  #more = h('button', { type: 'button', class: 'quiet', hidden: true }, t('more'));
  #shown = h('p', { class: 'shown' });
  #all = h('input', { type: 'checkbox', 'aria-label': t('selectAll') });
  #buttons = {};

  constructor(context) {
    this.#context = context;
    const { mayAct } = context;
    const act = (row, what) => h('button', { type: 'button', class: 'quiet', 'aria-label': t(`${what}One`, row.item.id), click: () => this.#decide(what, { ids: [row.item.id] }, 1) }, t(what));
    this.#table = new Table({
      caption: t('dead'), key: (letter) => letter.id, empty: () => (this.#isFiltered ? t('noDeadMatch') : t('noDead')),
      columns: [
        ...(mayAct ? [{
          title: t('selectAll'), isTitleHidden: true, head: this.#all, class: 'pick',
          make: (row) => (row.box = h('input', { type: 'checkbox', 'aria-label': t('select', row.item.id), change: (event) => this.#select(row.item.id, event.target.checked) })),
          fill: (cell, letter, row) => { row.box.checked = this.#selected.has(letter.id); },
        }] : []),
        { title: t('died'), class: 'when', make: (row) => context.clock(row.item.died) },
        { title: t('kind'), class: 'word', make: (row) => words.kinds[row.item.kind] ?? plain(row.item.kind) },
        { title: t('from'), class: 'place', make: (row) => bdi(row.item.from) },
        { title: t('to'), class: 'place', make: (row) => bdi(row.item.to) },
        { title: t('attempts'), class: 'number', fill: (cell, letter) => setText(cell, number(letter.attempts)) },
        { title: t('reason'), isHead: true, class: 'wide', make: (row) => bdi(row.item.reason, 1000) },
        {
          title: t('actions'), class: 'acts',
          make: (row) => [
            ...(mayAct ? [act(row, 'retry'), act(row, 'drop')] : []),
            h('a', { class: 'quiet', href: context.address({ view: 'events', id: row.item.message ?? row.item.key }), click: context.follow, 'aria-label': t('traceOne', plain(row.item.message ?? row.item.key, 60)) }, t('trace'))],
        },
      ],
    });
    this.#table.isHeld = () => this.#selected.size > 0;
    this.#all.addEventListener('change', () => this.#selectAll(this.#all.checked));
    this.#more.addEventListener('click', () => this.#loadMore());
    this.#chip.addEventListener('click', () => {
      document.activeElement.blur();
      this.#selected.clear();
      this.#load();
    });
    this.element = h('section', {}, h('h2', {}, t('dead')), this.#makeForm(), mayAct && this.#makeActions(), h('div', { class: 'line' }, this.#shown, this.#chip),
      this.#table.element, this.#more);
  }

  get #isFiltered() {
    return Boolean(this.#filter.bridge || this.#filter.to || this.#filter.text);
  }

  #makeForm() {
    const field = (name, control) => h('label', {}, h('span', {}, t(name)), control);
    this.#form = h('form', { class: 'filters', role: 'search' },
      field('bridge', h('select', { name: 'bridge' })), field('to', h('select', { name: 'to' })),
      field('text', h('input', { name: 'text', type: 'search', autocomplete: 'off', maxlength: '200' })));
    const apply = () => this.#context.go({ view: 'dead', ...Object.fromEntries(new FormData(this.#form)) }, { isSame: true });
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      apply();
    });
    this.#form.addEventListener('change', apply);
    return this.#form;
  }

  #makeActions() {
    const button = (name, click) => (this.#buttons[name] = h('button', { type: 'button', class: 'quiet', click }));
    const selected = () => ({ ids: [...this.#selected] });
    const matching = () => ({ newest: this.#newest, bridge: this.#filter.bridge || undefined, to: this.#filter.to || undefined, text: this.#filter.text || undefined });
    return h('div', { class: 'actions', role: 'group', 'aria-label': t('actions') },
      button('retrySelected', () => this.#decide('retry', selected(), this.#selected.size)),
      button('dropSelected', () => this.#decide('drop', selected(), this.#selected.size)),
      button('retryMatching', () => this.#decide('retry', matching(), this.#count)),
      button('dropMatching', () => this.#decide('drop', matching(), this.#count)));
  }

  open(filter) {
    this.#filter = { bridge: filter.bridge ?? '', to: filter.to ?? '', text: filter.text ?? '' };
    this.#selected.clear();
    this.#letters = [];
    this.#table.update([], { isForced: true });
    this.#fillForm();
    this.#form.text.value = this.#filter.text;
    this.#load();
  }

  /** What can be chosen is what there is; what was chosen stays, whether it is there or not. */
  #fillForm() {
    const { status } = this.#context.service;
    const bridges = (status?.bridges ?? []).map((each) => each.name);
    const places = [...new Set((status?.lanes ?? []).filter((lane) => !this.#filter.bridge || lane.bridge === this.#filter.bridge).map((lane) => lane.to))];
    const options = (values, chosen) => [...new Set(['', ...values.sort(), chosen])].map((value) =>
      h('option', { value, selected: value === chosen }, value === '' ? t('any') : plain(value)));
    this.#form.bridge.replaceChildren(...options(bridges, this.#filter.bridge));
    this.#form.to.replaceChildren(...options(places, this.#filter.to));
    this.#choices = this.#known(status);
  }

  /** What there is to choose from, to notice when it changes. */
  #known(status) {
    return [...(status?.bridges ?? []).map((each) => each.name), status?.laneCount].join(' ');
  }

  update(health) {
    if (this.#choices !== this.#known(health.status) && !this.#form.contains(document.activeElement)) this.#fillForm();
    const isNews = this.#lastCount !== undefined && health.status.dead !== this.#lastCount;
    this.#lastCount = health.status.dead;
    if (isNews) this.#load({ isCounting: this.#table.hasFocus || this.#selected.size > 0, isQuiet: true });
  }

  /** While somebody is at a row only the count is told. Quiet when nobody asked for it. */
  async #load({ isCounting = false, isQuiet = false } = {}) {
    if (this.#isLoading) return;
    this.#isLoading = true;
    const filter = this.#filter;
    try {
      const page = await this.#context.service.get('dead', { ...filter, limit: PAGE });
      if (filter !== this.#filter) return;
      const newest = this.#letters[0]?.id ?? 0;
      const unseen = page.letters.filter((letter) => letter.id > newest);
      this.#count = page.count;
      if (isCounting && unseen.length > 0 && this.#letters.length > 0) {
        this.#chip.hidden = false;
        setText(this.#chip, t('showNew', unseen.length));
      } else {
        const oldest = page.letters.at(-1)?.id ?? 0;
        const isWhole = page.letters.length < PAGE;
        this.#newest = page.newest;
        this.#letters = [...page.letters, ...(isWhole ? [] : this.#letters.filter((letter) => letter.id < oldest))];
        this.#chip.hidden = true;
      }
      this.#show();
    } catch (error) {
      if (!isQuiet) this.#context.fail(error);
    } finally {
      this.#isLoading = false;
      if (filter !== this.#filter) this.#load();
    }
  }

  async #loadMore() {
    try {
      const page = await this.#context.service.get('dead', { ...this.#filter, limit: PAGE, before: this.#letters.at(-1)?.id });
      this.#letters.push(...page.letters);
      this.#show();
    } catch (error) {
      this.#context.fail(error);
    }
  }

  #show() {
    this.#context.still(() => this.#draw());
  }

  #draw() {
    this.#table.update(this.#letters);
    setText(this.#shown, this.#count > 0 ? t('shown', number(this.#letters.length), number(this.#count)) : '');
    this.#more.hidden = this.#letters.length >= this.#count || this.#letters.length === 0;
    this.#showActions();
  }

  #showActions() {
    const { retrySelected, dropSelected, retryMatching, dropMatching } = this.#buttons;
    if (!retrySelected) return;
    const chosen = this.#selected.size;
    for (const [button, name, count] of [
      [retrySelected, 'retrySelected', chosen], [dropSelected, 'dropSelected', chosen],
      [retryMatching, 'retryMatching', this.#count], [dropMatching, 'dropMatching', this.#count]]) {
      setText(button, t(name, number(count)));
      button.disabled = count === 0;
    }
    this.#all.checked = chosen > 0 && chosen === this.#letters.length;
    this.#all.indeterminate = chosen > 0 && chosen < this.#letters.length;
  }

  #select(id, isOn) {
    if (isOn) this.#selected.add(id);
    else this.#selected.delete(id);
    this.#showActions();
  }

  #selectAll(isOn) {
    this.#selected = new Set(isOn ? this.#letters.map((letter) => letter.id) : []);
    this.#show();
  }

  async #decide(what, wish, count) {
    // A single retry does no harm; everything else is asked.
    if ((what === 'drop' || count > 1) && !(await this.#ask(what, count))) return;
    try {
      const { done } = wish.ids ? await this.#inPortions(what, wish.ids) : await this.#context.service.post(`dead/${what}`, wish);
      const gone = wish.ids ?? this.#letters.filter((letter) => letter.id <= wish.newest).map((letter) => letter.id);
      const isGone = new Set(gone);
      for (const id of gone) this.#selected.delete(id);
      this.#letters = this.#letters.filter((letter) => !isGone.has(letter.id));
      this.#count = Math.max(0, this.#count - done);
      this.#table.remove(gone);
      this.#show();
      say(t(what === 'retry' ? 'retried' : 'dropped', number(done)));
      this.#load({ isCounting: this.#letters.length > 0 && this.#table.hasFocus, isQuiet: true });
    } catch (error) {
      this.#context.fail(error);
    }
  }

  async #inPortions(what, ids) {
    let done = 0;
    for (let start = 0; start < ids.length; start += 500) {
      done += (await this.#context.service.post(`dead/${what}`, { ids: ids.slice(start, start + 500) })).done;
    }
    return { done };
  }

  #ask(what, count) {
    return new Promise((resolve) => {
      const answer = (isYes) => () => {
        resolve(isYes);
        dialog.close();
      };
      const yes = h('button', { type: 'button', class: what === 'drop' ? 'danger' : 'primary', click: answer(true) }, t(what));
      const dialog = openDialog([h('div', { class: 'answers' }, h('button', { type: 'button', class: 'quiet', click: answer(false) }, t('cancel')), yes)],
        t(what === 'retry' ? 'askRetry' : 'askDrop', number(count) === '1' ? 1 : number(count)), 'question');
      dialog.addEventListener('close', () => resolve(false));
    });
  }
}
