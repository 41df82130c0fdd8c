// The menu of a message, and questions that need an answer. Both take the focus and give it back.

import { h, pieces, clipped, plain } from './text.js';
import { isPicture } from './row.js';
import { t } from './words.js';

const QUICK = ['👍', '❤️', '😂', '😮', '😢', '🙏'];

/** Opens the menu of a row at a point of the window. Returns what closes it. */
export function openMessageMenu(actions, row, { x, y }) {
  const { app, room } = actions;
  const { message } = row;
  const entries = [];
  const add = (key, action, label = t(key)) => entries.push(
    h('button', { type: 'button', role: 'menuitem', tabindex: '-1', 'data-action': key, click: () => run(action) }, label));
  if (row.state) {
    if (row.state !== 'sending') add('retry', () => room.outbox.retry(message.client_id));
    add('remove', () => room.outbox.discard(message.client_id));
    add('copy', () => copy(app, message.text));
  } else {
    add('reply', () => app.composer.reply(row));
    if (message.text) add('copy', () => copy(app, message.text));
    for (const { href } of pieces(message.text).filter((piece) => piece.href).slice(0, 3)) {
      add('openLink', () => open(href, '_blank', 'noopener,noreferrer'), t('openLink', clipped(href, 40)));
    }
    for (const file of message.attachments ?? []) {
      if (isPicture(file)) {
        add('enlarge', () => actions.view('enlarge', file, room.log.element(row)));
        add('savePicture', () => actions.view('save', file));
      } else if (file.file) {
        add('saveFile', () => actions.view('save', file), t('saveFile', plain(file.name)));
      }
    }
    if (actions.timeline.isMine(row)) {
      add('edit', () => app.composer.edit(row));
      add('remove', () => remove(actions, row));
    }
  }
  add('cancel', () => {});
  const quick = row.state ? [] : [h('div', { class: 'quick', role: 'group', 'aria-label': t('react') }, ...QUICK.map((emoji) =>
    h('button', { type: 'button', role: 'menuitem', tabindex: '-1', 'aria-label': t('reactWith', emoji), 'data-emoji': emoji,
      click: () => run(() => room.wishes.toggle(row, emoji)) }, emoji)))];
  const menu = h('div', { class: 'menu', role: 'menu', 'aria-label': t('menu') }, ...quick, ...entries);
  const layer = h('div', { class: 'menu-layer' }, menu);

  const close = () => {
    layer.remove();
    document.removeEventListener('keydown', key, true);
    removeEventListener('blur', close);
  };
  function run(action) {
    close();
    room.log.element(row)?.focus({ preventScroll: true });
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

async function copy(app, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // There is no clipboard over plain HTTP from elsewhere: the old way.
    const field = h('textarea', { class: 'unseen' });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  app.announcer.say(t('copied'));
}

async function remove(actions, row) {
  if (!await ask(t('removeAsk'), t('remove'))) return;
  const { room, timeline, app } = actions;
  try {
    await room.api.remove(room.id, row.message.id);
    timeline.deleted(row.message.id, new Date().toISOString());
    actions.focusAfter(row);
  } catch (error) {
    app.announcer.say(error.message);
  }
}

/** Asks; true when the answer is yes. */
function ask(question, yes) {
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
