// Notices of the system, for who allowed them and looks elsewhere.

import { clipped, plain } from './text.js';

/** Asks for the permission; only ever after a click. */
export async function allowNotices(button) {
  await Notification.requestPermission();
  button.hidden = Notification.permission !== 'default';
}

/** One notice a room: the tag replaces the one before, in whatever tab it was made. */
export function showNotice(room, name, text, onClick) {
  try {
    const notice = new Notification(`${name} · ${plain(room)}`, { body: clipped(plain(text), 160), tag: `ferry:${room}` });
    notice.onclick = () => {
      focus();
      notice.close();
      onClick();
    };
  } catch { /* some phones allow notices from a service worker only */ }
}
