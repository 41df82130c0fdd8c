// The messages of one room, in the server's order, and what is derived from their order. No network.

import { day } from './text.js';

const GROUP_MILLISECONDS = 5 * 60_000;
/** More are not kept: the oldest go, and can be loaded again. */
const MOST = 12_000;
/** What an app of the service writes when somebody comes: no message, but a notice. */
const JOIN_NOTICE = document.querySelector('meta[name=join-notice]')?.content;
let keys = 0;

/** Whether an id comes after another in the server's order. Ids of this server are numbers without leading zeros. */
export function isAfter(id, other) {
  if (id.length !== other.length) return id.length > other.length;
  return id > other;
}

/**
 * A row of the log: a message (`message`, `state` undefined), a message on its way (`state` sending, waiting or failed), or a
 * notice (`notice`). What follows from the row before it: `isFirst` of its group, `showsDay`, `hasUnreadLine`.
 */
function row(content) {
  return { key: `row-${keys++}`, height: undefined, isFirst: true, showsDay: false, hasUnreadLine: false, ...content };
}

export class Timeline {
  /** `view` is told what changes: `inserted(index, rows)`, `removed(index, rows)`, `updated(row)`, `reset()`. */
  constructor(me, view) {
    this.me = me;
    this.view = view;
    this.rows = [];
    this.byID = new Map();
    this.byClientID = new Map();
    /** Rows at the end that the server has not got yet. */
    this.pending = 0;
    this.hasOlder = false;
    this.hasNewer = false;
    /** Reads of others: user id to `{ read, delivered }`. */
    this.marks = new Map();
    this.unreadAfter = undefined;
  }

  /** The last row that the server has. */
  get lastIndex() { return this.rows.length - this.pending - 1; }
  get oldest() { return this.rows.find((each) => each.message && !each.state)?.message.id; }
  get newest() { return this.rows.slice(0, this.lastIndex + 1).findLast((each) => each.message)?.message.id; }

  // MARK: Pages

  /** Takes the place of everything but what is on its way. Oldest first. */
  replace(messages, { hasOlder, hasNewer }) {
    const waiting = this.rows.slice(this.rows.length - this.pending);
    this.byID.clear();
    this.rows = [...this.#take(messages), ...waiting];
    this.hasOlder = hasOlder;
    this.hasNewer = hasNewer;
    this.#derive(0, this.rows.length);
    this.view.reset();
  }

  prepend(messages, hasOlder) {
    const rows = this.#take(messages);
    this.rows.unshift(...rows);
    this.hasOlder = hasOlder;
    this.view.inserted(0, rows);
    this.#derive(0, rows.length);
  }

  append(messages, hasNewer) {
    this.hasNewer = hasNewer;
    this.#insert(this.lastIndex + 1, this.#take(messages));
  }

  #take(messages) {
    const rows = [];
    for (const message of messages) {
      if (this.byID.has(message.id) || this.#claim(message)) continue;
      const isNotice = JOIN_NOTICE && message.text === JOIN_NOTICE && !message.attachments?.length;
      const new_ = row({ message, ...(isNotice && { notice: { kind: 'joined', by: message.author } }) });
      this.byID.set(message.id, new_);
      rows.push(new_);
    }
    return rows;
  }

  /** A message of mine that is on its way here turns out to have arrived. */
  #claim(message) {
    const mine = message.client_id && this.byClientID.get(message.client_id);
    if (!mine) return false;
    this.arrived(message);
    return true;
  }

  #insert(index, rows) {
    if (rows.length === 0) return;
    this.rows.splice(index, 0, ...rows);
    this.view.inserted(index, rows);
    this.#derive(index, index + rows.length);
  }

  /** Lets go of the oldest, where nobody looks. */
  trim() {
    const extra = this.rows.length - MOST;
    if (extra <= 0) return;
    const gone = this.rows.splice(0, extra);
    for (const each of gone) if (each.message) this.byID.delete(each.message.id);
    this.hasOlder = true;
    this.view.removed(0, gone);
    this.#derive(0, 1);
  }

  // MARK: What happens

  /** A message that somebody posted. Returns its row, or undefined when it is here already or beyond what is loaded. */
  posted(message) {
    if (message.client_id && this.byClientID.has(message.client_id)) return this.arrived(message);
    if (this.byID.has(message.id) || this.hasNewer) return undefined;
    const [new_] = this.#take([message]);
    this.#insert(this.lastIndex + 1, [new_]);
    return new_;
  }

  edited(message) {
    const known = this.byID.get(message.id);
    if (!known || known.message.deleted || known.message.revision > message.revision) return;
    // Events carry no reactions.
    known.message = { ...message, reactions: message.reactions ?? known.message.reactions };
    this.view.updated(known);
  }

  deleted(id, time) {
    const known = this.byID.get(id);
    if (!known || known.message.deleted) return;
    known.message = { ...known.message, text: '', attachments: [], reactions: undefined, deleted: time };
    this.view.updated(known);
  }

  reacted(id, emoji, by, added) {
    const known = this.byID.get(id);
    if (!known || known.message.deleted) return;
    const reactions = (known.message.reactions ?? []).map((each) => ({ ...each, users: [...each.users] }));
    let entry = reactions.find((each) => each.emoji === emoji);
    if (!entry) reactions.push(entry = { emoji, users: [] });
    entry.users = entry.users.filter((user) => user.id !== by.id);
    if (added) entry.users.push(by);
    known.message = { ...known.message, reactions: reactions.filter((each) => each.users.length > 0) };
    this.view.updated(known);
  }

  /** Somebody's mark moved. */
  marked(user, id, state) {
    const marks = this.marks.get(user) ?? {};
    const before = marks[state];
    if (before && !isAfter(id, before)) return;
    this.marks.set(user, { ...marks, [state]: id });
    if (user === this.me.id) return;
    for (let index = this.lastIndex; index >= 0; index--) {
      const each = this.rows[index];
      if (!each.message) continue;
      if (before && !isAfter(each.message.id, before)) break;
      if (this.isMine(each) && !isAfter(each.message.id, id)) this.view.updated(each);
    }
  }

  /** How many others have read a message of mine, and how many have it. */
  readers(message) {
    let read = 0, delivered = 0;
    for (const [user, marks] of this.marks) {
      if (user === this.me.id) continue;
      if (marks.read && !isAfter(message.id, marks.read)) read += 1;
      else if (marks.delivered && !isAfter(message.id, marks.delivered)) delivered += 1;
    }
    return { read, delivered: read + delivered };
  }

  notice(notice, time) {
    if (this.hasNewer) return;
    this.#insert(this.lastIndex + 1, [row({ notice, time: Date.parse(time) })]);
  }

  // MARK: On their way

  /** Shows a message that is being sent. */
  sending(draft, state) {
    const new_ = row({ message: { ...draft, author: this.me, time: new Date(draft.time).toISOString() }, state });
    this.byClientID.set(draft.client_id, new_);
    this.rows.push(new_);
    this.pending += 1;
    this.view.inserted(this.rows.length - 1, [new_]);
    this.#derive(this.rows.length - 1, this.rows.length);
    return new_;
  }

  setState(clientID, state) {
    const known = this.byClientID.get(clientID);
    if (!known || known.state === state) return;
    known.state = state;
    this.view.updated(known);
  }

  /** The server has it. Its row becomes the message's, in the server's order. Returns the row. */
  arrived(message) {
    const known = this.byClientID.get(message.client_id);
    if (!known) return this.byID.get(message.id);
    this.withdraw(message.client_id, this.byID.has(message.id) || this.hasNewer ? undefined : known);
    if (this.byID.has(message.id) || this.hasNewer) return this.byID.get(message.id);
    known.message = message;
    known.state = undefined;
    known.time = undefined;
    this.byID.set(message.id, known);
    this.#insert(this.lastIndex + 1, [known]);
    this.view.updated(known);
    return known;
  }

  /** Takes a message that is on its way out of the log. `stays`: its row comes back at once in another place. */
  withdraw(clientID, stays) {
    const known = this.byClientID.get(clientID);
    if (!known) return;
    this.byClientID.delete(clientID);
    const index = this.rows.lastIndexOf(known);
    this.rows.splice(index, 1);
    this.pending -= 1;
    if (stays !== known) this.view.removed(index, [known]);
    this.#derive(index, index + 1);
  }

  isMine(row) { return row.message?.author.id === this.me.id; }

  // MARK: What follows from the order

  /** Others' messages after an id. */
  unreadCount(after) {
    let count = 0;
    for (let index = this.lastIndex; index >= 0; index--) {
      const { message } = this.rows[index];
      if (!message) continue;
      if (after && !isAfter(message.id, after)) break;
      if (message.author.id !== this.me.id && !message.deleted) count += 1;
    }
    return count;
  }

  /** Draws the line before the first of others' messages after `id`, where it stays. Returns its row. */
  drawUnreadLine(id) {
    const first = this.rows.find((each) =>
      each.message && !each.state && !this.isMine(each) && !each.message.deleted && isAfter(each.message.id, id));
    if (first) {
      first.hasUnreadLine = true;
      const index = this.rows.indexOf(first);
      this.#derive(index, index + 1);
      this.view.updated(first);
    }
    return first;
  }

  /** Goes through rows `from` to `to`, and on as long as something changes. */
  #derive(from, to) {
    for (let index = from; index < this.rows.length; index++) {
      const each = this.rows[index], before = this.rows[index - 1];
      const time = each.time ?? (each.time = Date.parse(each.message.time));
      const showsDay = !before || day(time) !== day(before.time);
      const isFirst = showsDay || each.hasUnreadLine || !each.message || !before.message || each.notice || before.notice
        || before.message.author.id !== each.message.author.id || Math.abs(time - before.groupTime) >= GROUP_MILLISECONDS;
      const groupTime = isFirst ? time : before.groupTime;
      const isSame = each.showsDay === showsDay && each.isFirst === isFirst && each.groupTime === groupTime;
      if (!isSame) {
        Object.assign(each, { showsDay, isFirst, groupTime });
        this.view.updated(each);
      } else if (index >= to) {
        return;
      }
    }
  }
}
