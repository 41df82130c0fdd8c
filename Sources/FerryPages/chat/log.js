// The scrolling list of rows: draws those in view and some around them, and keeps what people look at in its place.
//
// Every row has a measured height once it was drawn, and an estimate before. Space above and below stands for what is not
// drawn. Whatever changes, the row at the upper edge stays where it is; at the bottom, the bottom does.

const ESTIMATE = 72;
/** Pixels drawn beyond either edge; less until somebody scrolls, so that what is in view is there sooner. */
const AROUND = 900;
const AROUND_AT_FIRST = 200;
const MOST_ROWS = 300;
const NEAR_BOTTOM = 40;
const NEAR_TOP = 600;

export class Log {
  #rows = [];
  #elements = new Map();
  #rowOf = new WeakMap();
  #changed = new Set();
  /** What was drawn last: the rows, and where each begins and the last ends. The rows themselves may have changed since. */
  #drawn = { rows: [], tops: [0] };
  #anchor;
  #frame;
  #isPrinting = false;
  #around = AROUND;
  #drawRow;
  #on;

  /**
   * `drawRow(row, element?)` makes the element of a row, or brings one up to date. `on.older()`, `on.newer()`: more may be
   * wanted; `on.moved()`: something else is in view.
   */
  constructor(scroller, drawRow, on) {
    this.scroller = scroller;
    this.#drawRow = drawRow;
    this.#on = on;
    this.sticks = true;
    this.above = document.createElement('div');
    this.list = document.createElement('div');
    this.below = document.createElement('div');
    this.above.className = this.below.className = 'space';
    this.list.className = 'rows';
    scroller.replaceChildren(this.above, this.list, this.below);
    scroller.addEventListener('scroll', () => this.#scrolled(), { passive: true });
    this.sizes = new ResizeObserver((entries) => this.#resized(entries));
    this.sizes.observe(scroller);
    const print = matchMedia('print');
    print.addEventListener('change', () => this.#print(print.matches));
    addEventListener('beforeprint', () => this.#print(true));
    addEventListener('afterprint', () => this.#print(false));
  }

  // MARK: What changes. Nothing is drawn before the next frame.

  /** Shows other rows, at the bottom. */
  show(rows) {
    this.#rows = rows;
    for (const row of this.#elements.keys()) this.#remove(row);
    this.sticks = true;
    this.#anchor = undefined;
    this.#around = AROUND_AT_FIRST;
    // Of nothing there is nothing to measure now, and more may come before the next frame.
    if (rows.length > 0) this.draw();
    else this.#schedule();
  }

  /** The rows are the same array with some more, or fewer. */
  changed() { this.#schedule(); }

  updated(row) {
    if (!this.#elements.has(row)) return;
    this.#changed.add(row);
    this.#schedule();
  }

  /** Draws every row anew, as when the day changes. */
  updateAll() {
    for (const row of this.#elements.keys()) this.#changed.add(row);
    this.#schedule();
  }

  /** Scrolls a row to a part of the height (0 top, 1 bottom) and draws it. Returns its element. */
  reveal(row, part) {
    this.sticks = false;
    this.#anchor = { row, offset: this.scroller.clientHeight * part };
    this.draw();
    return this.#elements.get(row);
  }

  toBottom() {
    this.sticks = true;
    this.draw();
  }

  element(row) { return this.#elements.get(row); }
  row(element) { return this.#rowOf.get(element?.closest?.('.row')); }

  /** Scrolls as little as is needed to have all of a row in view, and returns its element. */
  makeVisible(row) {
    const { rows, tops } = this.#drawn;
    const index = rows.indexOf(row);
    if (index < 0) return this.reveal(row, this.#rows.indexOf(row) < this.#rows.indexOf(rows[0]) ? 0.05 : 0.6);
    const top = tops[index], height = tops[index + 1] - top;
    const view = this.scroller;
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + height > view.scrollTop + view.clientHeight) view.scrollTop = top + height - view.clientHeight;
    return this.#elements.get(row);
  }

  /** The rows of which at least half is in view. */
  inView() {
    const { rows, tops } = this.#drawn;
    const from = this.scroller.scrollTop, to = from + this.scroller.clientHeight;
    return rows.filter((row, index) => {
      const top = tops[index], bottom = tops[index + 1];
      return Math.min(bottom, to) - Math.max(top, from) >= (bottom - top) / 2;
    });
  }

  // MARK: Drawing

  #schedule() { this.#frame ??= requestAnimationFrame(() => this.draw()); }

  draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    const view = this.scroller;
    const height = view.clientHeight;
    for (const row of this.#changed) {
      const element = this.#elements.get(row);
      if (element) this.#drawRow(row, element);
    }
    let target = view.scrollTop, start, end, tops;
    this.#measure([...this.#changed].filter((row) => this.#elements.has(row)));
    this.#changed.clear();
    // What is drawn is measured, which may move what is in view: a second or third time settles it.
    for (let round = 0; round < 4; round++) {
      tops = this.#tops();
      const total = tops.at(-1);
      target = this.#target(tops, total - height, target);
      [start, end] = this.#range(tops, target, height);
      if (this.#place(start, end) === 0) break;
    }
    tops = this.#tops();
    this.above.style.height = `${tops[start]}px`;
    this.below.style.height = `${tops.at(-1) - tops[end]}px`;
    const rows = this.#rows.slice(start, end);
    this.#park(new Set(rows), tops, start);
    this.#drawn = { rows, tops: tops.slice(start, end + 1), isFirst: start === 0, isLast: end === this.#rows.length };
    target = this.sticks ? view.scrollHeight : this.#target(tops, view.scrollHeight - height, target);
    if (Math.abs(view.scrollTop - target) > 0.4) view.scrollTop = target;
    this.#remember();
    this.#ask();
    this.#on.moved();
  }

  /** Where every row begins, and last where the last ends. */
  #tops() {
    const tops = new Float64Array(this.#rows.length + 1);
    for (let index = 0; index < this.#rows.length; index++) {
      tops[index + 1] = tops[index] + (this.#rows[index].height ?? ESTIMATE);
    }
    return tops;
  }

  #target(tops, bottom, otherwise) {
    if (this.sticks) return Math.max(0, bottom);
    const index = this.#anchor ? this.#rows.indexOf(this.#anchor.row) : -1;
    return Math.max(0, Math.min(bottom, index < 0 ? otherwise : tops[index] + (this.#anchor.row.head ?? 0) - this.#anchor.offset));
  }

  #range(tops, top, height) {
    const count = this.#rows.length;
    if (this.#isPrinting) return [0, count];
    let start = search(tops, top - this.#around);
    let end = Math.min(count, search(tops, top + height + this.#around) + 1);
    if (end - start > MOST_ROWS) {
      start = Math.max(start, search(tops, top) - 60);
      end = Math.min(end, start + MOST_ROWS);
    }
    return [start, end];
  }

  /** Puts rows `start` to `end` into the document and takes the others out. Returns how many had other heights. */
  #place(start, end) {
    const wanted = this.#rows.slice(start, end);
    const isWanted = new Set(wanted);
    const focused = this.row(document.activeElement);
    for (const row of this.#elements.keys()) {
      if (!isWanted.has(row) && row !== focused) this.#remove(row);
    }
    if (focused && !isWanted.has(focused)) {
      const index = this.#rows.indexOf(focused);
      if (index < 0) this.#remove(focused);
      else if (index < start) wanted.unshift(focused);
      else wanted.push(focused);
    }
    const fresh = [];
    let next = this.list.firstChild;
    for (const row of wanted) {
      let element = this.#elements.get(row);
      if (!element) {
        element = this.#drawRow(row);
        element.id = row.key;
        this.#elements.set(row, element);
        this.#rowOf.set(element, row);
        fresh.push(row);
      }
      if (element === next) next = next.nextSibling;
      else this.list.insertBefore(element, next);
    }
    for (const row of fresh) this.sizes.observe(this.#elements.get(row));
    return this.#measure(fresh);
  }

  /** The focused row stays in the document when it is far away, out of the flow. */
  #park(rows, tops, start) {
    for (const [row, element] of this.#elements) {
      const isAway = !rows.has(row);
      if (isAway === element.classList.contains('parked') && !isAway) continue;
      element.classList.toggle('parked', isAway);
      element.style.top = isAway ? `${tops[Math.max(this.#rows.indexOf(row), 0)] - tops[start]}px` : '';
    }
  }

  #measure(rows) {
    let changes = 0;
    for (const row of rows) {
      const element = this.#elements.get(row);
      const { height } = element.getBoundingClientRect();
      if (Math.abs((row.height ?? ESTIMATE) - height) > 0.05) changes += 1;
      row.height = height;
      // Day, name and unread line come and go above the message: it is the message that stays in place.
      row.head = element.querySelector('.line, .notice')?.offsetTop ?? 0;
    }
    return changes;
  }

  #remove(row) {
    const element = this.#elements.get(row);
    this.sizes.unobserve(element);
    element.remove();
    this.#elements.delete(row);
  }

  // MARK: Moving

  #scrolled() {
    const view = this.scroller;
    this.sticks = !this.#isPrinting && view.scrollHeight - view.scrollTop - view.clientHeight <= NEAR_BOTTOM;
    if (!this.sticks) this.#around = AROUND;
    this.#remember();
    const { tops, isFirst, isLast } = this.#drawn;
    const isShort = !isFirst && view.scrollTop - tops[0] < this.#around / 2
      || !isLast && tops.at(-1) - view.scrollTop - view.clientHeight < this.#around / 2;
    if (isShort) this.#schedule();
    this.#ask();
    this.#on.moved();
  }

  /** What is at the upper edge, and how far from it. */
  #remember() {
    const { rows, tops } = this.#drawn;
    const top = this.scroller.scrollTop;
    const index = Math.min(search(tops, top), rows.length - 1);
    if (index >= 0) this.#anchor = { row: rows[index], offset: tops[index] + (rows[index].head ?? 0) - top };
  }

  #ask() {
    const view = this.scroller;
    if (view.scrollTop < NEAR_TOP) this.#on.older();
    if (view.scrollHeight - view.scrollTop - view.clientHeight < NEAR_TOP) this.#on.newer();
  }

  #resized(entries) {
    let isOther = false;
    for (const { target } of entries) {
      if (target === this.scroller) {
        isOther = true;
      } else {
        const row = this.row(target);
        const { height } = target.getBoundingClientRect();
        if (row && height > 0 && Math.abs((row.height ?? 0) - height) > 0.05) {
          this.#measure([row]);
          isOther = true;
        }
      }
    }
    // At once, before anything is painted.
    if (isOther) this.draw();
  }

  #print(is) {
    this.#isPrinting = is;
    this.draw();
  }
}

/** The index of the last top that is not after a place. */
function search(tops, place) {
  let low = 0, high = tops.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= place) low = middle;
    else high = middle - 1;
  }
  return Math.max(low, 0);
}
