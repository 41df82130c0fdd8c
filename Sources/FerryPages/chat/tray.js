// The files that are to go with the next message.

import { h, plain, byteSize } from './text.js';
import { t } from './words.js';
import { INLINE } from './row.js';
import { ApiError, path } from './net.js';

/** Uploads a file; `onProgress` hears from 0 to 1. Aborting the signal cancels it. */
function upload(token, file, name, onProgress, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', `${path('files')}?${new URLSearchParams({ name })}`);
    request.setRequestHeader('Authorization', `Bearer ${token}`);
    request.setRequestHeader('Content-Type', file.type || 'application/octet-stream');
    request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onload = () => {
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch { /* a proxy's page */ }
      if (request.status === 201) resolve(answer);
      else reject(new ApiError(request.status, answer.error?.code ?? 'unknown', answer.error?.message ?? ''));
    };
    request.onerror = () => reject(new ApiError(0, 'network', ''));
    request.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
    signal.addEventListener('abort', () => request.abort());
    request.send(file);
  });
}

/** They are uploaded as soon as they are chosen. */
export class Tray {
  #items = [];

  constructor(api, element, onChange) { Object.assign(this, { api, element, onChange }); }

  get isEmpty() { return this.#items.length === 0; }
  get isReady() { return this.#items.every((item) => item.stored); }
  get hasFailed() { return this.#items.some((item) => item.hasFailed); }

  add(files) {
    for (const file of [...files].slice(0, 32 - this.#items.length)) {
      const item = { file, name: Tray.#name(file), progress: 0 };
      item.element = h('li', { class: 'upload' });
      this.#items.push(item);
      this.element.append(item.element);
      if (INLINE.includes(file.type)) item.preview = URL.createObjectURL(file);
      this.#upload(item);
    }
  }

  /** What a screenshot tool or clipboard calls every picture says nothing. */
  static #name(file) {
    if (file.name && !/^image\.\w+$/u.test(file.name)) return plain(file.name);
    const time = new Date().toISOString().replace(/[-:]/gu, '').replace('T', '-').slice(0, 15);
    return `picture-${time}.${file.type.split('/')[1]?.replace(/\W.*/u, '') || 'bin'}`;
  }

  async #upload(item) {
    item.abort = new AbortController();
    item.hasFailed = false;
    item.progress = 0;
    this.#draw(item);
    try {
      item.stored = await upload(this.api.token, item.file, item.name, (part) => {
        item.progress = part;
        item.element.querySelector('progress')?.setAttribute('value', part);
        const percent = item.element.querySelector('.percent');
        if (percent) percent.textContent = t('uploading', Math.floor(part * 100));
      }, item.abort.signal);
    } catch (error) {
      if (error.name === 'AbortError') return;
      item.hasFailed = true;
      item.reason = error.status === 413 ? t('tooLarge') : t('uploadFailed');
    }
    this.#draw(item);
    this.onChange();
  }

  #draw(item) {
    const status = item.stored ? byteSize(item.file.size) : item.hasFailed ? item.reason : t('uploading', Math.floor(item.progress * 100));
    item.element.classList.toggle('failed', Boolean(item.hasFailed));
    item.element.replaceChildren(
      item.preview ? h('img', { src: item.preview, alt: '' }) : h('span', { class: 'file-sign', 'aria-hidden': 'true' }, '📄'),
      h('span', { class: 'upload-text' }, h('bdi', {}, item.name), h('span', { class: 'percent' }, status),
        ...(item.stored || item.hasFailed ? [] : [h('progress', { max: '1', value: String(item.progress), 'aria-label': item.name })])),
      ...(item.hasFailed ? [h('button', { type: 'button', class: 'again', click: () => this.#upload(item) }, t('retry'))] : []),
      h('button', { type: 'button', class: 'detach', 'aria-label': item.stored ? t('detach', item.name) : t('cancel'),
        click: () => this.#remove(item) }, '✕'));
    this.onChange();
  }

  #remove(item) {
    item.abort.abort();
    item.element.remove();
    this.#items = this.#items.filter((each) => each !== item);
    if (item.preview) URL.revokeObjectURL(item.preview);
    this.onChange();
  }

  /** Hands over what is uploaded, as a message names it, and is empty. */
  take() {
    const files = this.#items.map(({ stored, name }) => ({
      file: stored.sha256, name, type: stored.type, size: stored.size, width: stored.width, height: stored.height }));
    for (const item of [...this.#items]) this.#remove(item);
    return files;
  }

  clear() { for (const item of [...this.#items]) this.#remove(item); }
}
