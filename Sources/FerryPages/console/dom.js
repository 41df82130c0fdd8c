// Elements, and what strangers wrote made safe in them. Nothing here makes markup: texts become text nodes.

/** A new element with attributes (functions become listeners, `style` is set through CSSOM) and children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for what is drawn. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (name === 'style') Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const BIDI = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;
const CONTROLS = /[\p{Cc}\u2028\u2029]/gu;

/** A text of one line without what would change the order of the texts around it. */
export function plain(text, limit = 400) {
  return String(text ?? '').replace(BIDI, '').replace(CONTROLS, ' ').slice(0, limit);
}

/** What a stranger wrote, apart from the text around it. */
export const bdi = (text, limit) => h('bdi', {}, plain(text, limit));

/** Sets a text where it differs, so that nothing is drawn or spoken anew without need. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === undefined || value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// MARK: States

const OUTLINES = { ok: 'M8 1a7 7 0 1 0 .01 0Z', warning: 'M8 .8L15.6 14.6H.4Z', error: 'M1.5 1.5h13v13h-13Z', unknown: 'M8 .5L15.5 8L8 15.5L.5 8Z' };
const SIGNS = { ok: 'M4.6 8.2L7 10.6L11.4 5.6', warning: 'M8 5.4V9.6M8 11.6V12.6', error: 'M5 5L11 11M11 5L5 11', unknown: 'M5 8H11' };

/** The shape of a state: circle, triangle, square, diamond. */
export function shape(state) {
  return s('svg', { class: `shape ${state}`, viewBox: '0 0 16 16', 'aria-hidden': 'true' },
    s('path', { d: OUTLINES[state] }), s('path', { class: 'sign', d: SIGNS[state] }));
}

/** Word, shape and colour of a state. */
export class StateMark {
  element = h('span', { class: 'state' });
  #state;
  #word = h('span');

  set(state, word) {
    if (this.#state !== state) {
      this.#state = state;
      this.element.className = `state ${state}`;
      this.element.replaceChildren(shape(state), this.#word);
    }
    setText(this.#word, word);
    return this;
  }
}

export const stateMark = (state, word) => new StateMark().set(state, word).element;

// MARK: Saying and asking

/** Says something to those who cannot see what changed. */
export function say(text) {
  const status = document.querySelector('#status');
  status.textContent = '';
  // A moment later, so that the same text is spoken again.
  setTimeout(() => { status.textContent = text; }, 50);
}

/** Opens a dialog that takes the focus and gives it back. */
export function openDialog(content, title, className = '') {
  const before = document.activeElement;
  const heading = h('h2', { id: 'dialog-title' }, title);
  const dialog = h('dialog', { class: className, 'aria-labelledby': 'dialog-title' }, heading, ...content);
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
