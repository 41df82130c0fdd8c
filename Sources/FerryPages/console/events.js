// What was received lately, and the way of one message.

import { bdi, h, plain, setText, StateMark } from './dom.js';
import { Table } from './table.js';
import { showTrace } from './trace.js';
import { number, t, words } from './vocabulary.js';

const PAGE = 50;

export class Events {
  #context;
  #table;
  #trace = h('section', { class: 'trace', hidden: true });
  #input = h('input', { name: 'id', type: 'search', autocomplete: 'off', spellcheck: 'false', maxlength: '500' });
  #chip = h('button', { type: 'button', class: 'chip', hidden: true });
  #more = h('button', { type: 'button', class: 'quiet', hidden: true }, t('more'));
  #events = [];
  #last = 0;
  #isLoading = false;
  #traced;

  constructor(context) {
    this.#context = context;
    this.#table = new Table({
      caption: t('recent'), key: (event) => event.id, empty: t('noEvents'),
      columns: [
        { title: t('delivered'), make: (row) => [(row.mark = new StateMark()).element], fill: (cell, event, row) => row.mark.set(...fate(event)) },
        { title: t('at'), class: 'when', make: (row) => context.clock(row.item.accepted) },
        { title: t('from'), class: 'place', make: (row) => bdi(row.item.from) },
        { title: t('kind'), class: 'word', make: (row) => words.kinds[row.item.kind] ?? plain(row.item.kind) },
        { title: t('message'), isHead: true, class: 'id', make: (row) => bdi(row.item.message ?? row.item.key) },
        {
          title: t('trace'), isTitleHidden: true,
          make: ({ item }) => h('a', {
            class: 'quiet', href: context.address({ view: 'events', id: item.message ?? item.key }), click: context.follow,
            'aria-label': t('traceOne', plain(item.message ?? item.key, 60)),
          }, t('trace')),
        },
      ],
    });
    const form = h('form', { class: 'find', role: 'search' },
      h('label', {}, h('span', {}, t('find')), this.#input), h('button', { class: 'primary' }, t('findButton')));
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      context.go({ view: 'events', id: this.#input.value.trim() });
    });
    this.#chip.addEventListener('click', () => {
      document.activeElement.blur();
      this.#load();
    });
    this.#more.addEventListener('click', () => this.#loadMore());
    this.element = h('div', {}, h('section', {}, h('h2', {}, t('findTitle')), form), this.#trace,
      h('section', {}, h('div', { class: 'line' }, h('h2', {}, t('recent')), this.#chip), this.#table.element, this.#more));
  }

  open({ id }) {
    this.#input.value = id ?? '';
    this.#traced = id;
    this.#trace.hidden = !id;
    this.#trace.replaceChildren();
    if (id) showTrace(this.#trace, id, this.#context);
    this.#load();
  }

  async update(health) {
    const last = health.status.lastEvent ?? 0;
    const unseen = last - this.#last;
    // Deliveries under way change what is shown, so the list is asked for again.
    const isOpen = this.#events.some((event) => event.settled + event.dead < event.deliveries);
    if (unseen <= 0 && !isOpen) return;
    if (this.#table.hasFocus) {
      this.#chip.hidden = unseen <= 0;
      setText(this.#chip, t('showNew', unseen));
      return;
    }
    await this.#load({ isQuiet: true });
  }

  /** Quiet when nobody asked for it: the first line tells when the relay is silent. */
  async #load({ isQuiet = false } = {}) {
    if (this.#isLoading) return;
    this.#isLoading = true;
    try {
      const newest = await this.#context.service.get('events', { limit: PAGE });
      const oldest = newest.at(-1)?.id ?? 0;
      // What "more" brought stays below, unless there is a hole between.
      const kept = this.#events.filter((event) => event.id < oldest);
      const isWhole = newest.length < PAGE || this.#events.some((event) => event.id >= oldest);
      this.#show([...newest, ...(isWhole ? kept : [])], newest.length === PAGE);
      this.#last = newest[0]?.id ?? 0;
      this.#chip.hidden = true;
    } catch (error) {
      if (!isQuiet) this.#context.fail(error);
    } finally {
      this.#isLoading = false;
    }
  }

  async #loadMore() {
    try {
      const more = await this.#context.service.get('events', { limit: PAGE, before: this.#events.at(-1)?.id });
      this.#show([...this.#events, ...more], more.length === PAGE);
    } catch (error) {
      this.#context.fail(error);
    }
  }

  #show(events, mayHaveMore) {
    if (events.length > this.#events.length || events[0]?.id !== this.#events[0]?.id) this.#more.hidden = !mayHaveMore;
    this.#events = events;
    this.#context.still(() => this.#table.update(events));
  }
}

/** How far an event's deliveries are. */
function fate(event) {
  const word = t('ofTotal', number(event.settled), number(event.deliveries));
  if (event.dead > 0) return ['error', word];
  return [event.settled < event.deliveries ? 'unknown' : 'ok', word];
}

