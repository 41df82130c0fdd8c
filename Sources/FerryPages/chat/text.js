// What strangers wrote, made safe and readable. Nothing here makes markup: texts become text nodes.

import { lang, locale, t } from './words.js';

/** A new element with attributes (functions become listeners, `style` is set through CSSOM) and children. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (name === 'class') element.className = value;
    else if (name === 'style') Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// In a narrow page a time that comes later would move the text beside it: there nothing waits.
let waiting = matchMedia('(max-width: 720px)').matches ? undefined : [];

/**
 * Does at once what can wait until the first messages are painted, or then. Above all what needs `Intl`: its first use
 * takes tens of milliseconds, and the later ones nearly nothing.
 */
export function later(work) {
  if (waiting) waiting.push(work);
  else work();
}

/** The first messages, or what stands in their place, are painted with the next frame, if this page is painted at all. */
export function paintsNow() {
  // Not at once, for the frame itself needs the processor.
  requestAnimationFrame(() => setTimeout(begin, 30));
  setTimeout(begin, 500);
  addEventListener('beforeprint', begin, { once: true });
}

function begin() {
  const all = waiting ?? [];
  waiting = undefined;
  for (const work of all) {
    try { work(); } catch (error) { reportError(error); }
  }
}

let extra;

/** The styles of what is not there at first, loaded when it comes. */
export function extraStyles() {
  extra ??= new Promise((resolve) =>
    document.head.append(h('link', { rel: 'stylesheet', href: '/chat/extra.css', load: resolve, error: resolve })));
  return extra;
}

// MARK: Names

const BIDI = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;
const CONTROLS = /[\p{Cc}\u2028\u2029]/gu;

/** Whether anything of it can be seen. */
export function isVisible(text) {
  return /[^\s\p{Default_Ignorable_Code_Point}\p{Cc}\p{Z}\u2800]/u.test(text);
}

/** A text of one line without what would change the order of the texts around it. */
export function plain(text) {
  return String(text ?? '').replace(BIDI, '').replace(CONTROLS, ' ').slice(0, 200);
}

/** What two names have in common that look alike. */
function skeleton(name) {
  const alike = { а: 'a', е: 'e', о: 'o', р: 'p', с: 'c', х: 'x', у: 'y', і: 'i', ѕ: 's', ј: 'j', ο: 'o', α: 'a', ν: 'v',
    ı: 'i', ɡ: 'g', 0: 'o', 1: 'l', i: 'l', '|': 'l' };
  return [...name.normalize('NFKC').toLowerCase().replace(/[\p{Default_Ignorable_Code_Point}\p{M}\s]/gu, '')]
    .map((character) => alike[character] ?? character).join('');
}

/** Names of users. Who comes later under a name that looks like another user's is shown with their id. */
export class Names {
  #owners = new Map();

  of(author) {
    const id = plain(author.id);
    const name = plain(author.name ?? '');
    if (!isVisible(name)) return isVisible(id) ? id : '?';
    const key = skeleton(name);
    if (!this.#owners.has(key)) this.#owners.set(key, author.id);
    return this.#owners.get(key) === author.id || name === id ? name : `${name} (${id})`;
  }
}

/** One or two letters for a picture that is not there. */
export function initials(name) {
  const words = name.split(/[\s._-]+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const letters = words.length > 1 ? [words[0], words.at(-1)] : words;
  return letters.map((word) => [...word].find((each) => /[\p{L}\p{N}]/u.test(each))).join('').toUpperCase() || '?';
}

// White on each has a contrast of more than 5.
const COLOURS = ['#8E3B76', '#2F5FA8', '#1F6F63', '#8A4B14', '#5B4BA8', '#A32F3F', '#3D6B21', '#4A5568'];

/** The same colour for the same id. */
export function colour(id) {
  let sum = 0;
  for (const character of id) sum = (sum * 31 + character.codePointAt(0)) % 4093;
  return COLOURS[sum % 8];
}

// MARK: Bodies

const LINK = /(?:https?:\/\/|mailto:)[^\s<>"`\u3000-\u303F\uFF01\uFF08\uFF09\uFF0C\uFF1F\p{Cc}]+/giu;
const TRAILING = /[.,;:!?'*_~…)\]}]$/u;
const PAIRS = { ')': '(', ']': '[', '}': '{' };

/** Splits a text into pieces: `{ text }`, and `{ text, href }` where it is a link. */
export function pieces(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(LINK)) {
    const link = trimmed(match[0]);
    const href = target(link);
    if (!href) continue;
    if (match.index > end) found.push({ text: text.slice(end, match.index) });
    found.push({ text: link, href });
    end = match.index + link.length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}

/** Without the punctuation of the sentence around it. A bracket stays when its partner is inside. */
function trimmed(link) {
  let rest = link.replace(BIDI, '') === link ? link : link.split(BIDI)[0];
  while (TRAILING.test(rest)) {
    const open = PAIRS[rest.at(-1)];
    if (open && rest.split(open).length >= rest.split(rest.at(-1)).length) break;
    rest = rest.slice(0, -1);
  }
  return rest;
}

/** Where a link goes; undefined for what is none. A link with a user name in it shows one host and goes to another. */
function target(link) {
  if (!URL.canParse(link)) return undefined;
  const url = new URL(link);
  const isWeb = ['http:', 'https:'].includes(url.protocol) && url.hostname && !url.username && !url.password;
  return isWeb || (url.protocol === 'mailto:' && url.pathname.includes('@')) ? url.href : undefined;
}

let emoji;

/** Whether a character as people count them is an emoji. The expression takes long to make, so it is made when needed. */
function isEmoji(character) {
  if (!/[^\p{ASCII}\p{L}]/u.test(character)) return false;
  try {
    emoji ??= new RegExp('^\\p{RGI_Emoji}$', 'v');
  } catch {
    emoji = /^\p{Extended_Pictographic}[\p{M}\p{Emoji_Modifier}\u200D\p{Extended_Pictographic}]*$/u;
  }
  return emoji.test(character);
}

let segmenter;

/** The characters of a text as people count them. */
function graphemes(text) {
  segmenter ??= new Intl.Segmenter(lang, { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/** Whether a text is one to three emoji and nothing else. */
export function isEmojiOnly(text) {
  // No letter but ℹ is part of an emoji.
  if (text.length > 120 || /[^\P{L}ℹ]/u.test(text)) return false;
  const parts = [...graphemes(text.replace(/\s/gu, ''))];
  return parts.length > 0 && parts.length <= 3 && parts.every((part) => isEmoji(part.segment));
}

/** The first characters of a text, never half of one. */
export function clipped(text, length) {
  if (text.length <= length) return text;
  let end = 0;
  for (const part of graphemes(text.slice(0, length + 64))) {
    if (part.index > length) break;
    end = part.index;
  }
  return `${text.slice(0, end || length)}…`;
}

// MARK: Times

/** Writes times; what it needs is made at the first. */
function format(options) {
  let made;
  return (time) => (made ??= new Intl.DateTimeFormat(locale, options)).format(time);
}

export const clockTime = format({ hour: 'numeric', minute: '2-digit' });
export const fullTime = format({ dateStyle: 'full', timeStyle: 'long' });
const dayOfWeek = format({ weekday: 'long', month: 'long', day: 'numeric' });
const dayOfMonth = format({ month: 'short', day: 'numeric' });
const dayOfYear = format({ year: 'numeric', month: 'long', day: 'numeric' });

/** The local calendar day of a time, as a text that can be compared. */
export function day(time) {
  const date = new Date(time);
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}-${String(date.getDate()).padStart(2, '0')}`;
}

export function dayLabel(time, now = Date.now()) {
  const today = new Date(now);
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (day(time) === day(today)) return t('today');
  if (day(time) === day(yesterday)) return t('yesterday');
  const date = new Date(time);
  return (date.getFullYear() === today.getFullYear() ? dayOfWeek : dayOfYear)(date);
}

/** When something was, in a few characters: the time today, else the day. */
export function shortTime(time) {
  const date = new Date(time);
  return day(date) === day(Date.now()) ? clockTime(date) : dayOfMonth(date);
}

export function byteSize(bytes) {
  if (!Number.isFinite(bytes)) return '';
  const [unit, divisor] = bytes < 1e3 ? ['byte', 1] : bytes < 1e6 ? ['kilobyte', 1e3] : ['megabyte', 1e6];
  return new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'short', maximumFractionDigits: 1 })
    .format(bytes / divisor);
}
