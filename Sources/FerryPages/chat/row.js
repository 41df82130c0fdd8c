// Draws one row of the log, with the pictures and other files of its message.

import {
  h, plain, initials, colour, pieces, isEmojiOnly, clockTime, fullTime, dayLabel, clipped, byteSize, later,
} from './text.js';
import { t, lang } from './words.js';

const FOLD_AT = 2000;
const SVG = 'http://www.w3.org/2000/svg';
// Cut off where the shape ends, lest the box around it widen the log.
const TAILS = { own: ['20 30', 'M0 10Q10 20 20 0Q13 30 5 20Z'], other: ['25 25', 'M20 15Q5 10 5 5Q0 10 10 25Z'] };

function tail(kind) {
  const [size, path] = TAILS[kind];
  const svg = document.createElementNS(SVG, 'svg');
  const shape = document.createElementNS(SVG, 'path');
  for (const [name, value] of [['class', 'tail'], ['viewBox', `0 0 ${size}`], ['aria-hidden', 'true']]) {
    svg.setAttribute(name, value);
  }
  shape.setAttribute('d', path);
  svg.append(shape);
  return svg;
}

/** These change from within: a click that began on one before a change and ends after it is a click all the same. */
const LASTING = ['line', 'reactions', 'reaction', 'count'];

/** Gives an element these children. What is there already and the same stays, with the selection and clicks in it. */
function settle(element, fresh) {
  const old = [...element.childNodes];
  for (let index = 0; index < Math.max(old.length, fresh.length); index++) {
    const [was, is] = [old[index], fresh[index]];
    if (!is) was.remove();
    else if (!was) element.append(is);
    else if (LASTING.includes(is.className) && was.className === is.className && was.dataset.emoji === is.dataset.emoji) {
      for (const { name, value } of is.attributes) if (was.getAttribute(name) !== value) was.setAttribute(name, value);
      settle(was, [...is.childNodes]);
    } else if (!was.isEqualNode(is)) was.replaceWith(is);
  }
}

export class RowDrawer {
  /** `context`: me, names, timeline, attachments (draws files and pictures), wishes (reactions on their way). */
  constructor(context) { this.context = context; }

  /** The row's element, new or brought up to date. Its focus is kept. */
  draw(row, element = h('div', { class: 'row', role: 'article', tabindex: '-1' })) {
    const { timeline } = this.context;
    const isMine = timeline.isMine(row);
    const parts = [];
    if (row.showsDay) parts.push(this.#day(row));
    if (row.hasUnreadLine) parts.push(h('div', { class: 'unread-line' }, h('span', {}, t('unread'))));
    if (row.notice) parts.push(this.#notice(row));
    else parts.push(...this.#message(row, isMine));
    const isFocusInside = element.contains(document.activeElement) && document.activeElement !== element;
    const isParked = element.classList.contains('parked');
    element.className = ['row', row.notice ? 'of-notice' : isMine ? 'own' : 'other', row.isFirst && 'first',
      row.state, isParked && 'parked'].filter(Boolean).join(' ');
    settle(element, parts);
    if (isFocusInside && !element.contains(document.activeElement)) element.focus({ preventScroll: true });
    if (row.message) later(() => element.setAttribute('aria-label', this.#label(row, isMine)));
    return element;
  }

  #label(row, isMine) {
    const { message } = row;
    const name = isMine ? t('you') : this.context.names.of(message.author);
    const body = message.deleted ? t('deleted') : clipped(message.text, 300);
    const files = (message.attachments ?? []).map((each) => plain(each.name)).join(', ');
    const state = row.state ? t({ failed: 'notSent', waiting: 'waiting' }[row.state] ?? 'sending') : '';
    return [name, clockTime(row.time), body, files, state].filter(Boolean).join(', ');
  }

  #day(row) {
    return h('div', { class: 'day' }, this.#time(row, dayLabel));
  }

  #time({ time }, text) {
    const element = h('time', { datetime: new Date(time).toISOString() }, '\u00A0');
    later(() => {
      element.title = fullTime(time);
      element.textContent = text(time);
    });
    return element;
  }

  #notice(row) {
    return h('div', { class: 'notice' }, h('bdi', {}, t(row.notice.kind, this.context.names.of(row.notice.by))));
  }

  #message(row, isMine) {
    const { message } = row;
    const { names } = this.context;
    const parts = [];
    if (row.isFirst && !isMine) {
      const name = names.of(message.author);
      parts.push(
        h('span', { class: 'avatar', style: { background: colour(message.author.id) }, 'aria-hidden': 'true' }, initials(name)),
        h('div', { class: 'name' }, h('bdi', {}, name)));
    }
    const isLarge = !message.deleted && !message.attachments?.length && isEmojiOnly(message.text);
    const bubble = h('div', { class: `bubble${isLarge ? ' large' : ''}${message.deleted ? ' gone' : ''}` });
    if (row.isFirst && !isLarge) bubble.append(tail(isMine ? 'own' : 'other'));
    if (message.deleted) {
      bubble.append(h('div', { class: 'text' }, t('deleted')));
    } else {
      if (message.reply_to) bubble.append(this.#quote(row));
      if (message.text) bubble.append(...this.#text(row));
      if (message.attachments?.length) bubble.append(this.context.attachments.draw(row));
      if (message.revision > 0) bubble.append(h('span', { class: 'edited' }, t('edited')));
    }
    const line = h('div', { class: 'line' }, bubble, this.#meta(row, isMine));
    if (!message.deleted && !row.state) {
      line.append(h('button', { class: 'more', type: 'button', tabindex: '-1', 'aria-label': t('menu'),
        'aria-haspopup': 'menu' }, '⋯'));
    }
    parts.push(line);
    const reactions = this.#reactions(row);
    if (reactions) parts.push(reactions);
    if (row.state === 'failed' || row.state === 'waiting') parts.push(this.#failure(row));
    return parts;
  }

  #meta(row, isMine) {
    const meta = h('div', { class: 'meta' });
    if (isMine && !row.state && !row.message.deleted) {
      const { read, delivered } = this.context.timeline.readers(row.message);
      if (read) meta.append(h('span', { class: 'read' }, this.context.isGroup() ? t('readBy', read) : t('read')));
      else if (delivered) meta.append(h('span', { class: 'read' }, t('delivered')));
    }
    if (row.state === 'sending') meta.append(h('span', { class: 'read' }, t('sending')));
    meta.append(this.#time(row, clockTime));
    return meta;
  }

  #quote(row) {
    const { names } = this.context;
    const id = row.message.reply_to;
    const original = this.context.original(id, row);
    const text = !original ? '…' : original.deleted ? t('deleted')
      : clipped(original.text, 120) || plain(original.attachments[0]?.name);
    return h('button', { class: 'quote', type: 'button', tabindex: '-1', 'data-message': id, dir: 'auto' },
      original && h('strong', {}, h('bdi', {}, original.author.id === this.context.me.id
        ? t('you') : names.of(original.author))), h('span', {}, text));
  }

  /** The body, folded when it is long. */
  #text(row) {
    const { text } = row.message;
    const isLong = text.length > FOLD_AT;
    const shown = isLong && !row.isUnfolded ? clipped(text, FOLD_AT) : text;
    const body = h('div', { class: 'text', dir: 'auto' });
    for (const piece of pieces(shown)) {
      if (piece.href) {
        body.append(h('a', { href: piece.href, target: '_blank', rel: 'noopener noreferrer', tabindex: '-1' }, piece.text));
      } else {
        body.append(...this.#mentions(piece.text));
      }
    }
    if (!isLong) return [body];
    return [body, h('button', { class: 'fold', type: 'button', tabindex: '-1', 'aria-expanded': String(!!row.isUnfolded) },
      t(row.isUnfolded ? 'less' : 'more'))];
  }

  /** Marks my own name where somebody mentions it. */
  #mentions(text) {
    const mention = `@${this.context.me.name}`.toLowerCase();
    const lower = text.toLowerCase();
    const nodes = [];
    let end = 0;
    for (let at = lower.indexOf(mention); at >= 0 && lower.length === text.length; at = lower.indexOf(mention, at + 1)) {
      const next = text.slice(at + mention.length);
      if (at < end || /^[\p{L}\p{N}_]/u.test(next) || /[\p{L}\p{N}_]$/u.test(text.slice(0, at))) continue;
      nodes.push(text.slice(end, at), h('mark', {}, text.slice(at, at + mention.length)));
      end = at + mention.length;
    }
    nodes.push(text.slice(end));
    return nodes;
  }

  #reactions(row) {
    const reactions = this.context.wishes.seen(row);
    if (reactions.length === 0) return undefined;
    const names = new Intl.ListFormat(lang);
    return h('div', { class: 'reactions' }, ...reactions.map(({ emoji, users, isMine }) =>
      h('button', {
        class: 'reaction', type: 'button', tabindex: '-1', 'aria-pressed': String(isMine), 'data-emoji': emoji,
        'aria-label': t('reactions', plain(emoji), users.length),
        title: names.format(users.slice(0, 20).map((user) => this.context.names.of(user))),
      }, h('span', {}, clipped(plain(emoji), 8)), h('span', { class: 'count' }, String(users.length)))));
  }

  #failure(row) {
    return h('div', { class: 'failure' }, h('span', {}, t(row.state === 'failed' ? 'notSent' : 'waiting')),
      h('button', { class: 'resend', type: 'button', tabindex: '-1' }, t('retry')),
      h('button', { class: 'discard', type: 'button', tabindex: '-1' }, t('remove')));
  }
}

// MARK: Files

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
  /** Rows whose files are drawn, longest first. */
  #drawn = new Set();

  constructor(api) { this.api = api; }

  /** The files of a row. Elements are kept for a while, so that drawing the row again does not load them again. */
  draw(row) {
    const files = row.message.attachments;
    const isSame = row.files?.drawnFor === JSON.stringify(files);
    if (!isSame) {
      row.files = h('div', { class: 'files' }, ...files.map((file) => this.#file(file)));
      row.files.drawnFor = JSON.stringify(files);
    }
    this.#drawn.delete(row);
    this.#drawn.add(row);
    for (const old of this.#drawn) {
      if (this.#drawn.size <= KEPT) break;
      this.#drawn.delete(old);
      if (!old.files.isConnected) old.files = undefined;
    }
    return row.files;
  }

  #file(file) {
    const name = plain(file.name) || 'file';
    if (isPicture(file)) return this.#picture(file, name);
    const label = [h('bdi', { class: 'file-name' }, name), h('span', { class: 'file-size' }, byteSize(file.size))];
    if (file.file) {
      return h('button', { class: 'file', type: 'button', tabindex: '-1', 'aria-label': t('saveFile', name),
        'data-file': file.file }, h('span', { class: 'file-sign', 'aria-hidden': 'true' }, '📄'), ...label);
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
    const frame = h('div', { class: 'picture', style: { width: `${width}px`, aspectRatio: `${width} / ${height}` } });
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
}
