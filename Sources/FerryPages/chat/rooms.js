// The list of rooms, with what was said last and how much is unread.

import { h, plain, clipped, shortTime, isVisible, later } from './text.js';
import { isAfter } from './timeline.js';
import { t } from './words.js';

export class Rooms {
  #rooms = new Map();
  #elements = new Map();
  #frame;

  /** `on.open(room)`, `on.make(name)`. */
  constructor(element, context, on) {
    Object.assign(this, { context, on });
    this.list = element.querySelector('.room-list');
    this.none = element.querySelector('.no-rooms');
    this.current = undefined;
    this.list.addEventListener('click', (event) => {
      const button = event.target.closest('.room');
      if (button) on.open(button.dataset.room);
    });
    const form = element.querySelector('.new-room');
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const name = form.elements.name.value.trim();
      if (!isVisible(name)) return;
      form.reset();
      on.make(name);
    });
  }

  get unread() {
    let sum = 0;
    for (const room of this.#rooms.values()) sum += room.unread;
    return sum;
  }

  get(id) { return this.#rooms.get(id); }

  /** `sequence`: up to where the list tells what happened. */
  replace(rooms, sequence) {
    this.sequence = sequence;
    // A room where nothing was read yet is new, not unread.
    this.#rooms = new Map(rooms.map((room) => [room.id, { ...room, unread: room.read ? room.unread : 0 }]));
    this.#schedule();
  }

  put(room) {
    this.#rooms.set(room.id, { unread: 0, ...this.#rooms.get(room.id), ...room });
    this.#schedule();
  }

  open(id) {
    this.current = id;
    this.#schedule();
  }

  /** Something happened in a room. */
  event(event, sequence, isMine) {
    if (sequence <= this.sequence) return;
    let room = this.#rooms.get(event.room);
    if (!room) this.#rooms.set(event.room, room = { id: event.room, title: event.room, members: 0, unread: 0 });
    switch (event.kind) {
      case 'message':
        room.last = event.message;
        if (!isMine) room.unread += 1;
        break;
      case 'edit':
        if (room.last?.id === event.message.id) room.last = event.message;
        break;
      case 'delete':
        if (room.last?.id === event.id) room.last = { ...room.last, text: '', attachments: [], deleted: event.time };
        break;
      case 'join':
        room.members += 1;
        break;
      case 'leave':
        room.members = Math.max(0, room.members - 1);
        break;
      default:
        return;
    }
    this.#schedule();
  }

  /** I have read up to a message, after which so many are unread. What was known before is not taken back. */
  read(id, upTo, unread) {
    const room = this.#rooms.get(id);
    if (!room || (room.read && !isAfter(upTo, room.read))) return;
    Object.assign(room, { read: upTo, unread });
    this.#schedule();
  }

  #schedule() {
    later(() => this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined;
      this.#draw();
    }));
    this.on.changed();
  }

  /** Latest first. Elements stay, so that the focus does. */
  #draw() {
    const time = (room) => Date.parse(room.last?.time ?? room.created ?? 0) || 0;
    const rooms = [...this.#rooms.values()].sort((a, b) => time(b) - time(a) || (a.id < b.id ? -1 : 1));
    this.none.hidden = rooms.length > 0;
    for (const [id, element] of this.#elements) {
      if (this.#rooms.has(id)) continue;
      element.remove();
      this.#elements.delete(id);
    }
    let next = this.list.firstChild;
    for (const room of rooms) {
      let element = this.#elements.get(room.id);
      if (!element) this.#elements.set(room.id, element = h('li', {}));
      this.#fill(element, room);
      if (element === next) next = next.nextSibling;
      else this.list.insertBefore(element, next);
    }
  }

  #fill(element, room) {
    const { last, unread } = room;
    const preview = !last ? '' : last.deleted ? t('deleted')
      : `${last.author.id === this.context.me.id ? t('you') : this.context.names.of(last.author)}: ${
        clipped(plain(last.text) || plain(last.attachments?.[0]?.name), 80)}`;
    const when = last ? shortTime(last.time) : '';
    const state = JSON.stringify([room.title, preview, when, unread, room.id === this.current]);
    if (element.dataset.state === state) return;
    element.dataset.state = state;
    let button = element.firstChild;
    if (!button) element.append(button = h('button', { type: 'button', class: 'room', 'data-room': room.id }));
    if (room.id === this.current) button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
    button.replaceChildren(...[
      h('span', { class: 'room-title' }, h('bdi', {}, plain(room.title) || room.id)),
      h('span', { class: 'room-time' }, when),
      h('span', { class: 'room-last' }, h('bdi', {}, preview)),
      unread > 0 && h('span', { class: 'badge', 'aria-label': t('newMessages', unread) }, unread > 99 ? '99+' : String(unread)),
    ].filter(Boolean));
  }
}
