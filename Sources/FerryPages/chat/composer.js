// The bar in which messages are written: sending, editing, replying, drafts, files.

import { h, isVisible, clipped, plain, extraStyles } from './text.js';
import { t } from './words.js';

const TYPING_EVERY = 3000;

export class Composer {
  #typingSaid = 0;
  #reply;
  #editing;
  #room;
  #completion;

  /**
   * `on.send({ text, reply_to, attachments, mentions })`, `on.edit(row, text)` (a promise), `on.typing(is)`,
   * `on.editLast()`, `on.leave()`, `on.target(row)` when the message edited or replied to should be in view.
   */
  constructor(form, api, context, on) {
    Object.assign(this, { form, api, context, on });
    this.field = form.querySelector('textarea');
    this.button = form.querySelector('.send');
    this.bar = form.querySelector('.purpose');
    this.error = form.querySelector('.error');
    this.tray = undefined;
    this.isCoarse = matchMedia('(pointer: coarse)').matches;
    const picker = form.querySelector('input[type=file]');
    form.querySelector('.attach').addEventListener('click', () => picker.click());
    picker.addEventListener('change', () => {
      this.attach(picker.files);
      picker.value = '';
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.field.addEventListener('keydown', (event) => this.#key(event));
    this.field.addEventListener('input', () => this.#changed());
    this.field.addEventListener('paste', (event) => this.#paste(event));
    addEventListener('pagehide', () => this.#saveDraft());
  }

  // MARK: Rooms and drafts

  get #draftKey() { return `ferry.draft:${this.api.me.id}:${this.#room}`; }

  /** Shows the draft of a room. */
  open(room) {
    if (this.#editing) this.cancel();
    this.#room = room;
    this.#reply = undefined;
    this.#typingSaid = 0;
    this.tray?.clear();
    this.field.value = localStorage.getItem(this.#draftKey) ?? '';
    this.field.placeholder = t('write');
    this.#showPurpose();
    this.#grow();
  }

  #saveDraft() {
    if (!this.#room || this.#editing) return;
    const text = this.field.value;
    if (isVisible(text)) localStorage.setItem(this.#draftKey, text);
    else localStorage.removeItem(this.#draftKey);
  }

  focus() { this.field.focus(); }

  // MARK: Keys

  #key(event) {
    // Safari ends the composition before the Enter that ended it: 229 is its mark.
    if (event.isComposing || event.keyCode === 229) return;
    if (this.#completion?.key(event)) return;
    if (event.key === 'Enter' && !event.shiftKey && !event.altKey && (!this.isCoarse || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === 'Escape' && (this.#editing || this.#reply)) {
      event.preventDefault();
      this.cancel();
    } else if (event.key === 'ArrowUp' && this.field.value === '' && !this.#editing) {
      event.preventDefault();
      this.on.editLast();
    }
  }

  #changed() {
    this.#saveDraft();
    this.#grow();
    this.#refresh();
    this.#sayTyping();
    this.#complete();
  }

  /** Loads the completion of names with the first `@`. */
  async #complete() {
    if (!this.#completion && this.field.value.includes('@')) {
      const [{ Completion }] = await Promise.all([import('./mentions.js'), extraStyles()]);
      this.#completion ??= new Completion(this.field, this.form.querySelector('.names'), this.context);
    }
    this.#completion?.update();
  }

  /** Members came or went. */
  membersChanged() { this.#completion?.update(); }

  #sayTyping() {
    if (this.#editing) return;
    const isTyping = isVisible(this.field.value);
    const now = Date.now();
    if (!isTyping) this.stopTyping();
    else if (now - this.#typingSaid >= TYPING_EVERY) {
      this.#typingSaid = now;
      this.on.typing(true);
    }
  }

  stopTyping() {
    if (!this.#typingSaid) return;
    this.#typingSaid = 0;
    this.on.typing(false);
  }

  /** As high as its text, up to six lines. */
  #grow() {
    this.field.style.height = 'auto';
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, 6 * 24 + 22)}px`;
  }

  #refresh() {
    this.button.disabled = !(isVisible(this.field.value) || this.#hasFiles) || this.tray?.isReady === false;
    this.form.classList.toggle('has-files', this.#hasFiles);
  }

  // MARK: Files

  get #hasFiles() { return this.tray?.isEmpty === false; }

  async attach(list) {
    const files = [...list];
    if (this.#editing) this.cancel();
    const [{ Tray }] = await Promise.all([import('./tray.js'), extraStyles()]);
    this.tray ??= new Tray(this.api, this.form.querySelector('.tray'), () => this.#refresh());
    this.tray.add(files);
    this.focus();
  }

  #paste(event) {
    const files = [...event.clipboardData.files];
    // Office programs put a picture beside the text that was copied.
    if (files.length === 0 || event.clipboardData.types.includes('text/plain')) return;
    event.preventDefault();
    this.attach(files);
  }

  // MARK: Purpose

  reply(row) {
    if (this.#editing) this.cancel();
    this.#reply = row;
    this.#showPurpose();
    this.focus();
  }

  edit(row) {
    this.#saveDraft();
    this.#editing = { row, revision: row.message.revision };
    this.#reply = undefined;
    this.field.value = row.message.text;
    this.#showPurpose();
    this.#grow();
    this.focus();
    this.on.target(row);
  }

  cancel() {
    const wasEditing = this.#editing;
    this.#editing = this.#reply = undefined;
    if (wasEditing) this.field.value = localStorage.getItem(this.#draftKey) ?? '';
    this.#showPurpose();
    this.#grow();
  }

  #showPurpose() {
    const row = this.#editing?.row ?? this.#reply;
    this.form.classList.toggle('editing', Boolean(this.#editing));
    this.button.setAttribute('aria-label', t(this.#editing ? 'save' : 'send'));
    this.button.title = t(this.#editing ? 'save' : 'send');
    this.bar.hidden = !row;
    if (row) {
      const title = this.#editing ? t('editing') : t('replyTo', this.context.names.of(row.message.author));
      this.bar.replaceChildren(
        h('div', {}, h('strong', {}, title), h('span', { dir: 'auto' },
          clipped(row.message.text, 100) || plain(row.message.attachments?.[0]?.name))),
        ...(this.#editing ? [h('button', { type: 'submit', class: 'save-edit' }, t('save'))] : []),
        h('button', { type: 'button', class: 'cancel', click: () => { this.cancel(); this.focus(); } }, t('cancel')));
    }
    this.error.textContent = '';
    this.#refresh();
  }

  /** The message being edited was changed or deleted by somebody. */
  changedElsewhere(row) {
    if (this.#editing?.row !== row) return;
    if (row.message.deleted) {
      const text = this.field.value;
      this.#editing = undefined;
      this.field.value = text;
      this.#saveDraft();
      this.#showPurpose();
      this.error.textContent = t('editedDeleted');
    } else if (row.message.revision !== this.#editing.revision) {
      this.#editing.revision = row.message.revision;
      this.#ask(row);
    }
  }

  /** Which of two versions is to stay? Mine, once it is saved. */
  #ask(row) {
    this.error.replaceChildren(t('editedElsewhere'), ' ', h('button', { type: 'button', class: 'theirs', click: () => {
      this.field.value = row.message.text;
      this.error.textContent = '';
      this.#grow();
      this.#refresh();
      this.focus();
    } }, t('useTheirs')));
  }

  // MARK: Sending

  async #submit() {
    const text = this.field.value;
    if (this.#editing) return this.#saveEdit(text);
    if (!(isVisible(text) || this.#hasFiles) || this.tray?.isReady === false) return;
    const draft = { text: isVisible(text) ? text.trimEnd() : '' };
    if (this.#reply) draft.reply_to = this.#reply.message.id;
    if (this.#hasFiles) draft.attachments = this.tray.take();
    const mentions = this.context.mentioned(text);
    if (mentions.length > 0) draft.mentions = mentions;
    this.field.value = '';
    this.#reply = undefined;
    this.#saveDraft();
    this.#showPurpose();
    this.#grow();
    this.stopTyping();
    this.#completion?.update();
    this.on.send(draft);
    this.focus();
  }

  async #saveEdit(text) {
    const { row, revision } = this.#editing;
    if (!isVisible(text) && !row.message.attachments?.length) return;
    if (text === row.message.text) return this.cancel();
    this.button.disabled = true;
    const error = await this.on.edit(row, text, revision);
    if (this.#editing?.row !== row) return;
    if (!error) {
      this.cancel();
      this.focus();
    } else {
      this.#refresh();
      if (error === t('editedElsewhere')) this.#ask(row);
      else this.error.textContent = error;
    }
  }

  /** The revision that was edited is not the last: what is saved next is saved over it. */
  overwrite(row) { if (this.#editing?.row === row) this.#editing.revision = row.message.revision; }
}
