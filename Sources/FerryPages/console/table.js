// A table whose rows are kept by key: updates change texts and never move a row that somebody is at.

import { h, setText } from './dom.js';

/**
 * `columns` have a `title`, a `class`, `make(row)` for what a cell consists of, and `fill(cell, item, row)` for what
 * changes. `key(item)` names an item. On a narrow screen each row is a card, and titles stand before values.
 */
export class Table {
  #columns;
  #key;
  #rows = new Map();
  #body = h('tbody', { role: 'rowgroup' });
  #note = h('p', { class: 'note', hidden: true });
  #empty;
  /** Whether somebody is at a row for another reason than the focus, such as a selection. */
  isHeld = () => false;

  constructor({ caption, columns, key, empty }) {
    this.#columns = columns;
    this.#key = key;
    this.#empty = empty;
    const heads = columns.map((column) =>
      h('th', { role: 'columnheader', scope: 'col', class: column.class }, column.head ?? h('span', { class: column.isTitleHidden ? 'unseen' : '' }, column.title)));
    this.table = h('table', { role: 'table' },
      h('caption', { class: 'unseen' }, caption),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, ...heads)), this.#body);
    this.element = h('div', { class: 'table' }, this.table, this.#note);
  }

  get hasFocus() {
    return this.#body.contains(document.activeElement);
  }

  /** Shows these, in this order; while somebody is at a row, in the order they had. */
  update(items, { isForced = false } = {}) {
    const isHeld = !isForced && (this.hasFocus || this.isHeld());
    const wanted = new Map(items.map((item) => [this.#key(item), item]));
    for (const [key, row] of this.#rows) {
      if (wanted.has(key)) row.element.classList.remove('gone');
      else if (isHeld) row.element.classList.add('gone');
      else this.#remove(key);
    }
    let previous = null;
    for (const [key, item] of wanted) {
      let row = this.#rows.get(key);
      const isNew = !row;
      if (isNew) row = this.#add(key, item);
      row.item = item;
      this.#columns.forEach((column, index) => column.fill?.(row.cells[index], item, row));
      if (isHeld && isNew) this.#body.append(row.element);
      if (!isHeld) {
        const place = previous ? previous.nextSibling : this.#body.firstChild;
        if (place !== row.element) this.#body.insertBefore(row.element, place);
        previous = row.element;
      }
    }
    this.#note.hidden = items.length > 0 || this.#rows.size > 0;
    setText(this.#note, typeof this.#empty === 'function' ? this.#empty() : this.#empty);
    this.table.hidden = this.#rows.size === 0;
  }

  row(key) {
    return this.#rows.get(key);
  }

  get count() {
    return this.#rows.size;
  }

  #add(key, item) {
    const row = { key, item };
    row.cells = this.#columns.map((column) => {
      const cell = h(column.isHead ? 'th' : 'td', {
        role: column.isHead ? 'rowheader' : 'cell', scope: column.isHead ? 'row' : undefined, class: column.class,
        'data-title': column.isTitleHidden ? undefined : column.title,
      });
      if (column.make) cell.append(...[column.make(row)].flat());
      return cell;
    });
    row.element = h('tr', { role: 'row' }, ...row.cells);
    this.#rows.set(key, row);
    return row;
  }

  /** The focus of a row that goes passes to the next one. */
  #remove(key) {
    const row = this.#rows.get(key);
    const hasFocus = row.element.contains(document.activeElement);
    const next = row.element.nextElementSibling ?? row.element.previousElementSibling;
    const place = hasFocus ? [...row.element.querySelectorAll('button, a, input')].indexOf(document.activeElement) : -1;
    row.element.remove();
    this.#rows.delete(key);
    if (hasFocus) next?.querySelectorAll('button, a, input')[Math.max(0, place)]?.focus();
  }

  remove(keys) {
    for (const key of keys) if (this.#rows.has(key)) this.#remove(key);
  }
}
