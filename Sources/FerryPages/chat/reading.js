// What is read and what is not: marks, the title, notices, and what a screen reader is told.

import { clipped, plain } from './text.js';
import { t } from './words.js';
import { isAfter } from './timeline.js';

export const isLooking = () => document.visibilityState === 'visible' && document.hasFocus();

/** Sends read marks of the open room: for what was half in view for half a second, while the page is looked at. */
export class Reading {
  #timer;
  #inFlight = false;
  #wanted;
  #delivered;

  /** `onRead(id)` is called with each mark sent. */
  constructor(api, room, log, timeline, onRead) {
    Object.assign(this, { api, room, log, timeline, onRead });
    this.read = undefined;
    this.isOver = false;
    this.look = () => this.moved();
    addEventListener('focus', this.look);
    document.addEventListener('visibilitychange', this.look);
  }

  stop() {
    this.isOver = true;
    clearTimeout(this.#timer);
    removeEventListener('focus', this.look);
    document.removeEventListener('visibilitychange', this.look);
  }

  /** Something else is in view. */
  moved() {
    if (this.isOver || this.#timer || !isLooking()) return;
    const seen = this.#last();
    if (!seen) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const inView = this.log.inView();
      if (isLooking() && inView.includes(seen)) this.#mark(seen.message.id);
      this.moved();
    }, 500);
  }

  /** The last of others' messages in view that is not marked. */
  #last() {
    return this.log.inView().findLast((row) => row.message && !row.state && !this.timeline.isMine(row)
      && (!this.read || isAfter(row.message.id, this.read)));
  }

  #mark(id) {
    this.read = id;
    this.#wanted = id;
    this.onRead(id);
    this.#send();
  }

  /** A message is here, though nobody looks. */
  delivered(id) {
    this.#delivered = id;
    this.#send();
  }

  async #send() {
    if (this.#inFlight) return;
    this.#inFlight = true;
    const read = this.#wanted, delivered = this.#delivered;
    this.#wanted = this.#delivered = undefined;
    try {
      if (read) await this.api.mark(this.room, read, 'read');
      else if (delivered) await this.api.mark(this.room, delivered, 'delivered');
    } catch { /* the next mark says it too */ }
    setTimeout(() => {
      this.#inFlight = false;
      if (this.#wanted || this.#delivered) this.#send();
    }, 1000);
  }
}

/** Speaks others' new messages through a live region, at most once a second. */
export class Announcer {
  #waiting = [];
  #timer;

  constructor(element) { this.element = element; }

  message(name, text) {
    this.#waiting.push(`${name}: ${clipped(plain(text), 200)}`);
    this.#timer ??= setTimeout(() => this.#speak(), 1000);
  }

  say(text) { this.element.textContent = text; }

  #speak() {
    this.#timer = undefined;
    const [first, ...others] = this.#waiting.splice(0);
    this.say(others.length === 0 ? first : t('newMessages', others.length + 1));
  }
}

/** Shows the number of unread messages in the title. */
export function showTitle(room, unread) {
  document.title = `${unread > 0 ? `(${unread > 99 ? '99+' : unread}) ` : ''}${plain(room)}`;
}
