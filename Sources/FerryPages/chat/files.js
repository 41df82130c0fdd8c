// Pictures and other files in messages.

import { h, plain, byteSize } from './text.js';
import { t } from './words.js';

export const INLINE = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const MOST_PIXELS = 40e6;
const MOST_WIDTH = 240;
const MOST_HEIGHT = 320;
/** Pictures that stay in memory when their rows are not drawn. */
const KEPT = 60;

export const isPicture = (file) => Boolean(file.file) && INLINE.includes(file.type);

/** The box of a picture, reserved before it is loaded. */
function box({ width, height }) {
  if (!width || !height) return { width: MOST_WIDTH, height: 140 };
  const scale = Math.min(1, MOST_WIDTH / width, MOST_HEIGHT / height);
  return { width: Math.max(48, Math.round(width * scale)), height: Math.max(48, Math.round(height * scale)) };
}

export class Attachments {
  /** By SHA-256: a promise of an object URL. */
  #urls = new Map();

  constructor(api) { this.api = api; }

  /** The files of a row. Elements are kept with the row, so that drawing it again does not load them again. */
  draw(row) {
    const files = row.message.attachments;
    const isSame = row.files?.drawnFor === JSON.stringify(files);
    if (!isSame) {
      row.files = h('div', { class: 'files' }, ...files.map((file) => this.#file(file)));
      row.files.drawnFor = JSON.stringify(files);
    }
    return row.files;
  }

  #file(file) {
    const name = plain(file.name) || 'file';
    if (isPicture(file)) return this.#picture(file, name);
    const label = [h('bdi', { class: 'file-name' }, name), h('span', { class: 'file-size' }, byteSize(file.size))];
    if (file.file) {
      return h('button', { class: 'file', type: 'button', tabindex: '-1', 'aria-label': t('saveFile', name),
        click: () => this.save(file) }, h('span', { class: 'file-sign', 'aria-hidden': 'true' }, '📄'), ...label);
    }
    // Elsewhere: a link and no more, for loading it would tell that host who reads this.
    const isWeb = /^https?:\/\//iu.test(file.url ?? '');
    return h(isWeb ? 'a' : 'span', { class: 'file', tabindex: '-1',
      ...(isWeb && { href: file.url, target: '_blank', rel: 'noopener noreferrer' }) },
    h('span', { class: 'file-sign', 'aria-hidden': 'true' }, '🔗'), ...label);
  }

  #picture(file, name) {
    const isHuge = !file.width || !file.height || file.width * file.height > MOST_PIXELS;
    const { width, height } = box(file);
    const frame = h('div', { class: 'picture', style: { width: `${width}px`, height: `${height}px` } });
    const load = () => this.#load(file, name, frame);
    if (isHuge) {
      frame.append(h('button', { class: 'show', type: 'button', tabindex: '-1', click: load },
        h('span', {}, t('showPicture')), h('bdi', {}, name),
        h('span', {}, [file.width && `${file.width} × ${file.height}`, byteSize(file.size)].filter(Boolean).join(', '))));
    } else {
      load();
    }
    return frame;
  }

  async #load(file, name, frame) {
    frame.replaceChildren(h('div', { class: 'spinner', role: 'progressbar', 'aria-label': name }));
    try {
      const image = h('img', { alt: name, draggable: 'false', src: await this.url(file) });
      await image.decode();
      frame.replaceChildren(h('button', { class: 'enlarge', type: 'button', tabindex: '-1', 'aria-label':
        `${t('enlarge')}: ${name}`, 'data-file': file.file }, image));
    } catch {
      this.#urls.delete(file.file);
      frame.replaceChildren(h('div', { class: 'broken' }, h('span', {}, t('pictureFailed')), h('bdi', {}, name),
        h('span', {}, byteSize(file.size)),
        h('button', { class: 'again', type: 'button', tabindex: '-1', click: () => this.#load(file, name, frame) },
          t('retry'))));
    }
  }

  /** An object URL of a file's bytes. The token goes into a header, not into an address. */
  url(file) {
    let url = this.#urls.get(file.file);
    if (url) {
      this.#urls.delete(file.file);
    } else {
      url = this.api.file(file.file).then((blob) => URL.createObjectURL(
        // Never under a type that could run: somebody may open it in a tab of its own.
        INLINE.includes(blob.type) ? blob : new Blob([blob], { type: 'application/octet-stream' })));
      url.catch(() => this.#urls.delete(file.file));
    }
    this.#urls.set(file.file, url);
    for (const [key, old] of this.#urls) {
      if (this.#urls.size <= KEPT) break;
      this.#urls.delete(key);
      old.then((each) => URL.revokeObjectURL(each), () => {});
    }
    return url;
  }

  async save(file) {
    try {
      h('a', { href: await this.url(file), download: plain(file.name) || 'file' }).click();
    } catch {
      this.onFailure?.();
    }
  }

  /** Shows a picture as large as the window allows. */
  async enlarge(file, from) {
    const dialog = document.querySelector('#viewer');
    const image = h('img', { alt: plain(file.name), src: await this.url(file) });
    dialog.querySelector('.stage').replaceChildren(image);
    dialog.querySelector('.caption').replaceChildren(h('bdi', {}, plain(file.name)));
    dialog.querySelector('.save').onclick = () => this.save(file);
    dialog.onclose = () => {
      image.remove();
      from?.focus();
    };
    dialog.showModal();
  }
}
