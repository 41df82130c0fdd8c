// What people do with messages in the log: menu, keys, presses, links to other messages, files dropped on the page.

import { ApiError } from './net.js';
import { extraStyles } from './text.js';
import { t } from './words.js';

const PRESS_MILLISECONDS = 500;
const PRESS_MOVES = 10;

export class Actions {
  #press;
  #closeMenu;

  constructor(app) {
    this.app = app;
    const log = app.room.log.scroller;
    log.addEventListener('click', (event) => this.#click(event));
    log.addEventListener('contextmenu', (event) => this.#contextMenu(event));
    log.addEventListener('keydown', (event) => this.#key(event));
    log.addEventListener('pointerdown', (event) => this.#pressBegins(event));
    for (const kind of ['pointermove', 'pointerup', 'pointercancel']) {
      log.addEventListener(kind, (event) => this.#pressGoesOn(event), { passive: true });
    }
    // The log is one stop for the tab key: the focus goes on to a row.
    log.addEventListener('focus', () => this.focusRow(this.#active ?? this.rows.at(-1)));
    log.addEventListener('focusin', (event) => {
      const row = app.room.log.row(event.target);
      if (row) this.active = row;
      if (event.target !== log) log.tabIndex = -1;
    });
    log.addEventListener('focusout', () => log.tabIndex = 0);
    this.#drops();
  }

  get room() { return this.app.room; }
  get timeline() { return this.app.room.timeline; }
  get rows() { return this.timeline.rows; }
  get #active() { return this.rows.includes(this.active) ? this.active : undefined; }

  focusRow(row) {
    if (row) this.room.log.makeVisible(row)?.focus({ preventScroll: true });
  }

  // MARK: Clicks, keys, presses

  #click(event) {
    const row = this.room.log.row(event.target);
    const button = event.target.closest('button');
    if (!row || !button) return;
    const file = row.message?.attachments?.find((each) => each.file === button.dataset.file);
    const kinds = {
      more: () => this.menu(row, button.getBoundingClientRect()),
      reaction: () => this.room.wishes.toggle(row, button.dataset.emoji),
      resend: () => this.room.outbox.retry(row.message.client_id),
      discard: () => this.room.outbox.discard(row.message.client_id),
      quote: () => this.room.jumpTo(button.dataset.message),
      enlarge: () => this.view('enlarge', file, button),
      file: () => this.view('save', file),
      fold: () => {
        row.isUnfolded = !row.isUnfolded;
        // At once: what is below moves away from the bottom before anybody asks whether it is there.
        this.room.log.sticks = false;
        this.room.log.updated(row);
        this.room.log.draw();
      },
    };
    kinds[button.classList[0]]?.();
  }

  #contextMenu(event) {
    const row = this.room.log.row(event.target);
    // Links and selected text have a menu of the browser's.
    if (!row?.message || event.target.closest('a') || (String(getSelection()) && event.clientX)) return;
    event.preventDefault();
    const { left, bottom } = event.target.getBoundingClientRect();
    const isKeyboard = event.clientX === 0 && event.clientY === 0;
    this.menu(row, isKeyboard ? { left, bottom } : { left: event.clientX, bottom: event.clientY });
  }

  #key(event) {
    const { log } = this.room;
    const row = log.row(event.target);
    if (!row || event.target !== log.element(row) || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = this.rows.indexOf(row);
    const next = { ArrowUp: index - 1, ArrowDown: index + 1, Home: 0, End: this.rows.length - 1 }[event.key];
    if (next !== undefined && !event.shiftKey) this.focusRow(this.rows[Math.min(Math.max(next, 0), this.rows.length - 1)]);
    else if (event.key === 'Enter' || event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      this.menu(row, event.target.querySelector('.bubble')?.getBoundingClientRect());
    } else if (event.key === 'Escape') this.app.composer.focus();
    else return;
    event.preventDefault();
  }

  #pressBegins(event) {
    const row = this.room.log.row(event.target);
    clearTimeout(this.#press?.timer);
    if (event.pointerType === 'mouse' || !row?.message) return;
    const { clientX: x, clientY: y } = event;
    this.#press = { x, y, timer: setTimeout(() => this.menu(row, { left: x, bottom: y }), PRESS_MILLISECONDS) };
  }

  #pressGoesOn(event) {
    if (!this.#press) return;
    const hasMoved = Math.hypot(event.clientX - this.#press.x, event.clientY - this.#press.y) > PRESS_MOVES;
    if (event.type === 'pointermove' && !hasMoved) return;
    clearTimeout(this.#press.timer);
    this.#press = undefined;
  }

  async menu(row, place) {
    if (!row.message || row.notice || row.message.deleted) return;
    const [{ openMessageMenu }] = await Promise.all([import('./menu.js'), extraStyles()]);
    this.#closeMenu?.();
    this.#closeMenu = openMessageMenu(this, row, { x: place?.left ?? 0, y: place?.bottom ?? 0 });
  }

  /** Shows or saves a file. */
  async view(what, file, from) {
    const [viewer] = await Promise.all([import('./viewer.js'), extraStyles()]);
    await viewer[what](this.app.attachments, file, from).catch(() => this.app.announcer.say(t('failed')));
  }

  focusAfter(row) {
    this.focusRow(this.rows[Math.min(this.rows.indexOf(row) + 1, this.rows.length - 1)]);
  }

  // MARK: Editing

  editLast() {
    const row = this.rows.findLast((each) =>
      each.message && !each.notice && !each.state && !each.message.deleted && this.timeline.isMine(each) && each.message.text);
    if (row) this.app.composer.edit(row);
  }

  /** Saves an edit. Returns why not, or nothing. */
  async saveEdit(row, text, revision) {
    const { id } = row.message;
    try {
      this.timeline.edited(await this.room.api.edit(this.room.id, id, { text, revision }));
      return undefined;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 409) return error.message || t('failed');
      this.timeline.edited(await this.room.api.message(this.room.id, id));
      this.app.composer.overwrite(row);
      return t('editedElsewhere');
    }
  }

  // MARK: Dropping files

  #drops() {
    // Whatever is dropped, wherever: the browser is not to go there. A text may go into a field.
    const isText = (event) => !event.dataTransfer?.types.includes('Files') && event.target.closest?.('textarea, input');
    addEventListener('dragover', (event) => isText(event) || event.preventDefault());
    addEventListener('drop', (event) => {
      if (isText(event)) return;
      event.preventDefault();
      if (event.dataTransfer?.files.length > 0) this.app.composer.attach(event.dataTransfer.files);
    });
    let isAsked = false;
    addEventListener('dragenter', async (event) => {
      if (isAsked || !event.dataTransfer?.types.includes('Files')) return;
      isAsked = true;
      (await import('./drops.js')).showDrops();
    });
  }
}
