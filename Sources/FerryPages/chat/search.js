// Search in the open room, messages that are not loaded included.

import { h, clipped, clockTime, dayLabel } from './text.js';
import { t } from './words.js';

export class Search {
  #round = 0;
  #timer;

  /** `on.jump(id)` goes to a message, `on.close()` returns to where one was. */
  constructor(place, api, names, on) {
    Object.assign(this, { api, names, on });
    this.field = h('input', { type: 'search', autocomplete: 'off', placeholder: t('search'), 'aria-label': t('search') });
    this.list = h('ul', { class: 'results' });
    this.status = h('p', { class: 'search-status', role: 'status' });
    const close = h('button', { type: 'button', class: 'icon close', 'aria-label': t('searchClose') }, '✕');
    const panel = h('section', { class: 'search', 'aria-label': t('search') },
      h('div', { class: 'search-bar' }, this.field, close), this.status, this.list);
    this.panel = panel;
    place.before(panel);
    this.field.addEventListener('input', () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), 200);
    });
    this.field.addEventListener('keydown', (event) => {
      if (event.isComposing || event.keyCode === 229) return;
      if (event.key === 'Enter') this.#search();
      if (event.key === 'ArrowDown') this.list.querySelector('button')?.focus();
    });
    panel.addEventListener('keydown', (event) => event.key === 'Escape' && this.close());
    close.addEventListener('click', () => this.close());
    this.list.addEventListener('click', (event) => {
      const button = event.target.closest('button');
      if (button) on.jump(button.dataset.message);
    });
  }

  open(room) {
    this.room = room;
    this.panel.hidden = false;
    this.field.value = '';
    this.list.replaceChildren();
    this.status.textContent = '';
    this.field.focus();
  }

  close() {
    if (this.panel.hidden) return;
    clearTimeout(this.#timer);
    this.#round += 1;
    this.panel.hidden = true;
    this.on.close();
  }

  async #search() {
    clearTimeout(this.#timer);
    const text = this.field.value.trim();
    const round = ++this.#round;
    if (!text) {
      this.list.replaceChildren();
      this.status.textContent = '';
      return;
    }
    let messages = [], failed = false;
    try {
      ({ messages } = await this.api.messages(this.room, { text, limit: '50' }));
    } catch {
      failed = true;
    }
    if (round !== this.#round) return;
    this.status.textContent = failed ? t('failed') : messages.length > 0 ? t('results', messages.length) : t('nothingFound');
    this.list.replaceChildren(...messages.map((message) => h('li', {}, h('button', { type: 'button', 'data-message': message.id },
      h('strong', {}, h('bdi', {}, this.names.of(message.author))),
      h('time', {}, `${dayLabel(message.time)} ${clockTime(Date.parse(message.time))}`),
      h('span', { dir: 'auto' }, this.#around(message.text, text))))));
  }

  /** The part of a text around what was found. */
  #around(text, part) {
    const at = text.toLowerCase().indexOf(part.toLowerCase());
    // From the beginning of a word, where there are spaces.
    return clipped(at > 40 ? `…${text.slice(at - 40).replace(/^\S{0,30}\s/u, '')}` : text, 140);
  }
}
