// The open room: brings together its messages, the log, what is sent and what is read.

import { ApiError } from './net.js';
import { Timeline } from './timeline.js';
import { Log } from './log.js';
import { RowDrawer } from './row.js';
import { Outbox, Wishes } from './outbox.js';
import { Reading } from './reading.js';
import { plain, paintsNow } from './text.js';
import { t } from './words.js';

export const PAGE = 50;
const TYPING_LASTS = 5000;

export class RoomView {
  /** Others' messages that came while they were out of view. */
  missed = [];
  /** A page is on its way; `round` counts what makes its answer useless. */
  isLoading = false;
  round = 0;
  #later = [];
  /** Who has come and gone since the members were asked for, until they are here. */
  #comings;
  #typers = new Map();
  #originals = new Map();

  /** `app`: api, live, names, attachments, announcer, composer, rooms. */
  constructor(app, page) {
    Object.assign(this, { app, page, api: app.api });
    this.id = undefined;
    this.members = new Map();
    this.drawer = new RowDrawer(this);
    this.log = new Log(page.querySelector('#log'), (row, element) => this.drawer.draw(row, element), {
      older: () => this.#loadOlder(), newer: () => this.#loadNewer(), moved: () => this.#moved() });
    this.timeline = new Timeline(app.api.me, this);
    this.overlay = page.querySelector('.overlay');
    this.chip = page.querySelector('.chip');
    this.empty = page.querySelector('.empty');
    this.heading = page.querySelector('.heading h2 bdi');
    this.subtitle = page.querySelector('.typing');
    this.overlay.querySelector('button').addEventListener('click', () => this.open(this.id));
    this.chip.addEventListener('click', () => this.#followChip());
  }

  // MARK: What rows are drawn from

  get me() { return this.api.me; }
  get names() { return this.app.names; }
  get attachments() { return this.app.attachments; }
  isGroup() { return this.members.size > 2; }
  announce(text) { this.app.announcer.say(text); }
  membersForCompletion() {
    return [...this.members.values()].map((member) => ({ id: member.id, name: this.names.of(member) }));
  }

  recentAuthors() {
    const ids = [];
    for (const row of this.timeline.rows.slice(-200).reverse()) {
      const id = row.message?.author.id;
      if (id && !ids.includes(id)) ids.push(id);
    }
    return ids;
  }

  mentioned(text) {
    return text.includes('@') ? this.membersForCompletion().filter(({ name }) => text.includes(`@${name}`))
      .slice(0, 64).map(({ id }) => id) : [];
  }

  /** A message that is replied to: loaded, or fetched to draw `row` again. */
  original(id, row) {
    const known = this.timeline.byID.get(id)?.message ?? this.#originals.get(id);
    if (!known && !this.#originals.has(id)) {
      this.#originals.set(id, undefined);
      this.api.message(this.id, id).then((message) => {
        this.#originals.set(id, message);
        this.log.updated(row);
      }, () => {});
    }
    return known;
  }

  // MARK: The timeline's view

  inserted() {
    this.log.changed();
    this.empty.hidden = this.timeline.rows.length > 0;
  }

  removed() { this.inserted(); }
  updated(row) { this.log.updated(row); }

  reset() {
    this.log.show(this.timeline.rows);
    this.empty.hidden = this.timeline.rows.length > 0;
  }

  // MARK: Opening

  /** Shows a room. `opening` is its last page where it is on its way already. */
  async open(id, opening) {
    const round = ++this.round;
    this.id = id;
    this.#close();
    this.title = undefined;
    this.titleChanged();
    this.log.scroller.setAttribute('aria-label', t('messages', plain(id)));
    this.timeline = new Timeline(this.me, this);
    this.wishes = new Wishes(this.api, id, this.timeline, () => this.announce(t('failed')));
    this.outbox = new Outbox(this.api, id, this.timeline);
    this.reading = new Reading(this.api, id, this.log, this.timeline, (upTo) =>
      this.app.rooms.read(id, upTo, this.timeline.unreadCount(upTo)));
    this.log.show(this.timeline.rows);
    this.empty.hidden = true;
    this.#overlay(t('loading'));
    this.isLoading = true;
    try {
      let page = await (opening ?? this.api.opened(id, PAGE));
      // A room where nothing was read yet is new, not unread.
      const unread = page.read ? page.unread : 0;
      if (unread > PAGE - 10 && page.next) {
        paintsNow();
        page = await this.api.opened(id, unread < 100 ? unread + 10 : 500);
      }
      if (round !== this.round) return;
      this.title = page.title;
      this.titleChanged();
      this.reading.read = page.read;
      this.timeline.replace(page.messages.reverse(), { hasOlder: Boolean(page.next), hasNewer: false });
      this.applyLater();
      this.outbox.resume();
      const first = unread > 0 && this.timeline.drawUnreadLine(page.read);
      this.overlay.hidden = true;
      if (first) this.log.reveal(first, 1 / 3);
      else this.log.toBottom();
      paintsNow();
    } catch (error) {
      if (round !== this.round) return;
      paintsNow();
      if (!(error instanceof ApiError)) throw error;
      return this.#overlay(t('loadFailed'), true);
    } finally {
      if (round === this.round) this.isLoading = false;
    }
    await this.#join(round);
  }

  titleChanged() { this.heading.textContent = plain(this.title ?? this.app.rooms.get(this.id)?.title ?? this.id); }

  /** Tells who is here and what they have read, and that I am. Tries until it succeeds. */
  async #join(round) {
    while (round === this.round) {
      try {
        return await this.#tryToJoin(round);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.isRefused) return this.announce(error.message);
        if (error.status === 401) return undefined;
        await new Promise((resolve) => setTimeout(resolve, 3000));
      }
    }
  }

  async #tryToJoin(round) {
    const { id } = this;
    const comings = this.#comings = [];
    // A room that is not there yet has nobody in it.
    let { members } = await this.api.members(id).catch(() => ({ members: [] }));
    if (!members.some((member) => member.id === this.me.id)) {
      await this.api.join(id);
      members = [...members, this.me];
    }
    const { reads } = await this.api.reads(id);
    if (round !== this.round) return;
    this.members = new Map(members.map((member) => [member.id, member]));
    for (const event of comings) this.#setMember(event);
    this.#comings = undefined;
    for (const { by, id: upTo, state } of reads) if (by) this.timeline.marked(by.id, upTo, state);
    this.log.updateAll();
    this.app.composer.membersChanged();
    this.#showTyping();
  }

  #close() {
    this.reading?.stop();
    this.missed = [];
    this.#later = [];
    this.#originals.clear();
    this.members.clear();
    for (const { timer } of this.#typers.values()) clearTimeout(timer);
    this.#typers.clear();
    this.#showTyping();
    this.showChip();
  }

  #overlay(text, hasFailed = false) {
    this.overlay.hidden = false;
    this.overlay.querySelector('p').textContent = text;
    this.overlay.querySelector('.spinner').hidden = hasFailed;
    this.overlay.querySelector('button').hidden = !hasFailed;
  }

  // MARK: Pages

  #loadOlder() {
    if (this.isLoading || !this.timeline.hasOlder || !this.timeline.oldest) return;
    this.#load({ before: this.timeline.oldest }, ({ messages, next }) =>
      this.timeline.prepend(messages.reverse(), Boolean(next)));
  }

  #loadNewer() {
    if (this.isLoading || !this.timeline.hasNewer || !this.timeline.newest) return;
    this.#load({ order: 'oldest', after: this.timeline.newest }, ({ messages, next }) => {
      this.log.sticks = false;
      this.timeline.append(messages, Boolean(next));
    });
  }

  /** One page at a time. What happens meanwhile is applied to what the page brings, once more. */
  async #load(query, take) {
    const round = this.round;
    this.isLoading = true;
    try {
      const page = await this.api.messages(this.id, { limit: String(PAGE), ...query });
      if (round !== this.round) return;
      take(page);
      this.applyLater();
    } catch {
      if (round === this.round) await new Promise((resolve) => setTimeout(resolve, 2000));
    }
    if (round !== this.round) return;
    this.isLoading = false;
    this.log.changed();
  }

  applyLater() {
    for (const event of this.#later.splice(0)) this.#apply(event);
  }

  /** Shows a message, loading what is around it where need be. */
  async jumpTo(id) { (await import('./jump.js')).jumpTo(this, id); }

  /** Returns from there. */
  async toLatest() {
    if (this.timeline.hasNewer) await (await import('./jump.js')).toLatest(this);
    this.missed = [];
    this.log.toBottom();
  }

  // MARK: What happens

  event(event) {
    if (event.room !== this.id) return;
    if (this.isLoading) this.#later.push(event);
    // Before the first page is here there is nothing to apply it to, and no place for it.
    if (this.isLoading && !this.overlay.hidden) return;
    this.#apply(event);
  }

  #apply(event) {
    const { timeline } = this;
    switch (event.kind) {
      case 'message': return this.#posted(event.message);
      case 'edit':
        timeline.edited(event.message);
        break;
      case 'delete':
        timeline.deleted(event.id, event.time);
        break;
      case 'reaction':
        timeline.reacted(event.id, event.emoji, event.by, event.added);
        break;
      case 'read':
        if (event.by) timeline.marked(event.by.id, event.id, event.state);
        if (event.by?.id === this.me.id && event.state === 'read') {
          this.app.rooms.read(this.id, event.id, timeline.unreadCount(event.id));
        }
        break;
      case 'join':
      case 'leave':
        this.#memberChanged(event);
        break;
    }
    const row = timeline.byID.get(event.id ?? event.message?.id);
    if (row) this.app.composer.changedElsewhere(row);
  }

  #posted(message) {
    if (message.client_id) this.outbox.arrived(message.client_id);
    this.#typingEnded(message.author.id);
    const isMine = message.author.id === this.me.id;
    const { sticks } = this.log;
    const isKnown = this.timeline.byID.has(message.id);
    const row = this.timeline.posted(message);
    if (isMine || isKnown) return;
    this.reading.delivered(message.id);
    this.app.announcer.message(this.names.of(message.author), message.text || message.attachments.map((each) => each.name).join());
    if (!sticks || !row) this.missed.push(row);
    if (sticks) this.timeline.trim();
    this.showChip();
  }

  #setMember({ kind, by }) {
    if (kind === 'join') this.members.set(by.id, by);
    else this.members.delete(by.id);
  }

  #memberChanged(event) {
    const { kind, by, time } = event;
    const isNew = kind === 'join' && !this.members.has(by.id);
    this.#setMember(event);
    this.#comings?.push(event);
    if (kind === 'leave') this.#typingEnded(by.id);
    if (by.id !== this.me.id && (isNew || kind === 'leave')) {
      this.timeline.notice({ kind: kind === 'join' ? 'joined' : 'left', by }, time);
    }
    this.app.composer.membersChanged();
    this.#showTyping();
  }

  typing({ room, by, on }) {
    if (room !== this.id || by.id === this.me.id) return;
    if (!on) return this.#typingEnded(by.id);
    clearTimeout(this.#typers.get(by.id)?.timer);
    this.#typers.set(by.id, { by, timer: setTimeout(() => this.#typingEnded(by.id), TYPING_LASTS) });
    this.#showTyping();
  }

  #typingEnded(id) {
    clearTimeout(this.#typers.get(id)?.timer);
    if (this.#typers.delete(id)) this.#showTyping();
  }

  #showTyping() {
    const names = [...this.#typers.values()].map(({ by }) => this.names.of(by));
    const text = names.length > 0 ? t('typing', names) : this.members.size > 0 ? t('members', this.members.size) : '\u00A0';
    if (this.subtitle.textContent !== text) this.subtitle.textContent = text;
    this.subtitle.classList.toggle('on', names.length > 0);
  }

  // MARK: What is in view

  #moved() {
    if (this.missed.length > 0 || !this.chip.hidden || !this.log.sticks) {
      const inView = this.log.inView();
      const last = inView.findLast((row) => row.message);
      if (last) {
        const index = this.timeline.rows.lastIndexOf(last);
        this.missed = this.log.sticks && !this.timeline.hasNewer ? [] : this.missed.filter((row) =>
          !row || this.timeline.rows.lastIndexOf(row) > index);
      }
      this.showChip();
    }
    this.reading?.moved();
  }

  showChip() {
    const view = this.log.scroller;
    // Asked for last, for the answer takes a layout.
    const isFar = () => view.scrollHeight - view.scrollTop > view.clientHeight * 3;
    const count = this.missed.length;
    this.chip.hidden = !this.overlay.hidden || !(count > 0 || this.timeline.hasNewer || isFar());
    const text = count > 0 ? t('newMessages', count) : t('toLatest');
    if (this.chip.textContent !== text) this.chip.textContent = text;
  }

  #followChip() {
    const first = this.missed[0];
    if (first && !this.timeline.hasNewer) this.log.reveal(first, 1 / 3);
    else this.toLatest();
  }
}
