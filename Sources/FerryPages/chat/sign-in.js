// The screen for who has no name or token yet.

import { h, isVisible } from './text.js';
import { t } from './words.js';

/** Asks for name, token and room, filled in as far as they are known, and hands them to `start`. */
export function showSignIn({ name = '', room = 'lobby', token = '' }, problem = '', start) {
  document.querySelector('.sign-in')?.remove();
  const input = (key, value, more) => h('label', {}, h('span', {}, t(key)), h('input', { name: key, value, ...more }));
  const form = h('form', {},
    h('img', { src: '/chat/icon.svg', alt: '', width: '64', height: '64' }),
    h('h1', {}, t('signInTo', location.host)),
    input('name', name ?? '', { required: true, maxlength: '80', autocomplete: 'nickname' }),
    input('token', token ?? '', { required: true, type: 'password', autocomplete: 'off', placeholder: t('tokenFrom') }),
    input('room', room, { maxlength: '80', autocomplete: 'off' }),
    h('p', { class: 'error', role: 'alert' }, problem),
    h('button', { class: 'primary' }, t('signIn')));
  const screen = h('main', { class: 'sign-in' }, form);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(form)].map(([key, value]) => [key, value.trim()]));
    if (!isVisible(given.name)) return;
    screen.remove();
    start({ ...given, room: given.room || 'lobby' });
  });
  document.body.append(screen);
  form.querySelector(name ? '[name=token]' : '[name=name]').focus();
}
