// The configuration that is in effect, without its secrets.

import { bdi, h } from './dom.js';
import { Table } from './table.js';
import { t, words } from './vocabulary.js';

export class Settings {
  #context;
  #settings = [];
  #input = h('input', { type: 'search', name: 'filter', autocomplete: 'off' });
  #table = new Table({
    caption: t('settings'), key: (setting) => setting.key, empty: t('noDeadMatch'),
    columns: [
      { title: t('key'), isHead: true, class: 'id', make: (row) => bdi(row.item.key) },
      { title: t('value'), class: 'wide', make: (row) => bdi(row.item.value, 1000) },
      { title: t('origin'), make: (row) => words.origins[row.item.kind] ?? '' },
    ],
  });

  constructor(context) {
    this.#context = context;
    this.#input.addEventListener('input', () => this.#show());
    this.element = h('section', {}, h('h2', {}, t('settings')),
      h('form', { class: 'filters', role: 'search', submit: (event) => event.preventDefault() }, h('label', {}, h('span', {}, t('filter')), this.#input)),
      this.#table.element);
  }

  async open() {
    try {
      this.#settings = await this.#context.service.get('configuration');
      this.#show();
    } catch (error) {
      this.#context.fail(error);
    }
  }

  update() {}

  #show() {
    const words = this.#input.value.toLowerCase().split(/\s+/u);
    this.#table.update(this.#settings.filter(({ key, value }) => words.every((word) => `${key} ${value}`.toLowerCase().includes(word))), { isForced: true });
  }
}
