// Completion of members' names after `@`. The field stays a text field: the list is pointed at, never focused.

import { h } from './text.js';
import { t, lang } from './words.js';

let collator;

/** By the reader's alphabet. */
function compare(a, b) {
  collator ??= new Intl.Collator(lang, { sensitivity: 'base' });
  return collator.compare(a, b);
}

export class Completion {
  #active = 0;
  #names = [];
  #dismissed;

  /** `context.members()` gives the members, `context.recent()` the ids of who wrote last, latest first. */
  constructor(field, list, context) {
    Object.assign(this, { field, list, context });
    field.setAttribute('aria-controls', list.id);
    list.addEventListener('mousedown', (event) => {
      event.preventDefault();
      const option = event.target.closest('[role=option]');
      if (option) this.#accept(Number(option.dataset.index));
    });
    field.addEventListener('blur', () => this.#show([]));
    field.addEventListener('click', () => this.update());
    field.addEventListener('keyup', (event) => event.key.startsWith('Arrow') && !this.#isOpen && this.update());
  }

  get #isOpen() { return !this.list.hidden; }

  /** The word at the caret: `{ start, text }` after an `@` at the beginning or after a space. */
  #word() {
    const { selectionStart, selectionEnd, value } = this.field;
    if (selectionStart !== selectionEnd) return undefined;
    const match = /(?:^|\s)@([^\s@]*)$/u.exec(value.slice(0, selectionStart));
    return match && { start: selectionStart - match[1].length - 1, text: match[1], end: selectionStart };
  }

  update() {
    const word = document.activeElement === this.field ? this.#word() : undefined;
    if (!word || word.start !== this.#dismissed) this.#dismissed = undefined;
    this.#show(word && this.#dismissed === undefined ? this.#matching(word.text) : []);
  }

  /** Exact before start of the name before start of a word; within each who wrote lately, then by name. */
  #matching(text) {
    const part = text.toLocaleLowerCase(lang);
    const recent = this.context.recent();
    const rank = (id) => (recent.includes(id) ? recent.indexOf(id) : Infinity);
    const found = [];
    for (const member of this.context.members()) {
      const name = member.name.toLocaleLowerCase(lang);
      const level = name === part ? 0 : name.startsWith(part) ? 1
        : name.split(/[\s._-]+/u).some((each) => each.startsWith(part)) ? 2 : undefined;
      if (level !== undefined) found.push({ ...member, level });
    }
    return found.sort((a, b) =>
      a.level - b.level || Math.sign(rank(a.id) - rank(b.id)) || compare(a.name, b.name)).slice(0, 50);
  }

  #show(names) {
    const before = this.#names[this.#active]?.id;
    this.#names = names;
    this.#active = Math.max(0, names.findIndex((each) => each.id === before));
    this.list.hidden = names.length === 0;
    this.list.replaceChildren(...names.map((each, index) => h('li', {
      role: 'option', id: `name-${index}`, 'data-index': String(index), 'aria-selected': String(index === this.#active),
    }, h('bdi', {}, each.name))));
    if (names.length > 0) {
      this.field.setAttribute('aria-activedescendant', `name-${this.#active}`);
      this.list.children[this.#active].scrollIntoView({ block: 'nearest' });
      if (names.length !== this.announced) this.context.announce(t('suggestions', names.length));
    } else {
      this.field.removeAttribute('aria-activedescendant');
    }
    this.announced = names.length;
  }

  /** Whether the list took the key. */
  key(event) {
    if (!this.#isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.#active = (this.#active + step + this.#names.length) % this.#names.length;
      this.#show(this.#names);
    } else if ((event.key === 'Enter' && !event.shiftKey) || event.key === 'Tab') {
      this.#accept(this.#active);
    } else if (event.key === 'Escape') {
      this.#dismissed = this.#word()?.start;
      this.#show([]);
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }

  #accept(index) {
    const word = this.#word();
    const member = this.#names[index];
    if (!word || !member) return;
    const isAtStart = this.field.value.slice(0, word.start).trim() === '';
    this.field.setRangeText(`@${member.name}${isAtStart ? ': ' : ' '}`, word.start, word.end, 'end');
    this.#show([]);
    this.field.dispatchEvent(new Event('input', { bubbles: true }));
  }
}
