// The menu of a message, and questions that need an answer. Both take the focus and give it back.

import { h, pieces } from './text.js';
import { isPicture } from './files.js';
import { t } from './words.js';

export const QUICK = ['👍', '❤️', '😂', '😮', '😢', '🙏'];

/** Opens the menu of a row at a point of the window. `actions` has one function for each entry. */
export function openMenu(row, { x, y }, isMine, actions) {
  const { message } = row;
  const entries = [];
  const add = (key, action, label = t(key)) => entries.push(
    h('button', { type: 'button', role: 'menuitem', tabindex: '-1', 'data-action': key, click: () => run(action) }, label));
  if (row.state) {
    if (row.state !== 'sending') add('retry', actions.retry);
    add('remove', actions.discard);
    add('copy', actions.copy);
  } else {
    add('reply', actions.reply);
    if (message.text) add('copy', actions.copy);
    for (const { href } of pieces(message.text).filter((piece) => piece.href).slice(0, 3)) {
      add('openLink', () => actions.open(href), t('openLink', href.length > 40 ? `${href.slice(0, 40)}…` : href));
    }
    for (const file of message.attachments ?? []) {
      if (isPicture(file)) {
        add('enlarge', () => actions.enlarge(file));
        add('savePicture', () => actions.save(file));
      } else if (file.file) {
        add('saveFile', () => actions.save(file), t('saveFile', file.name));
      }
    }
    if (isMine) {
      add('edit', actions.edit);
      add('remove', actions.remove);
    }
  }
  add('cancel', () => {});
  const quick = row.state ? [] : [h('div', { class: 'quick', role: 'group', 'aria-label': t('react') }, ...QUICK.map((emoji) =>
    h('button', { type: 'button', role: 'menuitem', tabindex: '-1', 'aria-label': t('reactWith', emoji), 'data-emoji': emoji,
      click: () => run(() => actions.react(emoji)) }, emoji)))];
  const menu = h('div', { class: 'menu', role: 'menu', 'aria-label': t('menu') }, ...quick, ...entries);
  const layer = h('div', { class: 'menu-layer' }, menu);

  const close = () => {
    layer.remove();
    document.removeEventListener('keydown', key, true);
    removeEventListener('blur', close);
  };
  function run(action) {
    close();
    actions.giveBack();
    action();
  }
  function key(event) {
    const items = [...menu.querySelectorAll('[role=menuitem]')];
    const index = items.indexOf(document.activeElement);
    const inQuick = index >= 0 && index < quick.length * QUICK.length;
    const steps = { ArrowDown: inQuick ? QUICK.length - index : 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1,
      Home: -index, End: items.length - 1 - index };
    if (event.key in steps) items[(index + steps[event.key] + items.length) % items.length].focus();
    else if (event.key === 'Escape' || event.key === 'Tab') run(() => {});
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  layer.addEventListener('pointerdown', (event) => {
    if (event.target !== layer) return;
    event.preventDefault();
    run(() => {});
  });
  layer.addEventListener('contextmenu', (event) => event.preventDefault());
  document.addEventListener('keydown', key, true);
  document.querySelector('.conversation').append(layer);
  const { width, height } = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(8, Math.min(x, innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(y, innerHeight - height - 8))}px`;
  menu.querySelector('[role=menuitem]').focus();
  return close;
}

/** Asks; true when the answer is yes. */
export function ask(question, yes) {
  return new Promise((resolve) => {
    const dialog = h('dialog', { class: 'question', 'aria-label': question }, h('p', {}, question), h('div', { class: 'answers' },
      h('button', { type: 'button', click: () => dialog.close() }, t('cancel')),
      h('button', { type: 'button', class: 'yes', click: () => dialog.close('yes') }, yes)));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector('.yes').focus();
  });
}
