// Files dragged over the page: a sign that they may be dropped.

import { h, extraStyles } from './text.js';
import { t } from './words.js';

/** Begins to show the sign; called while the first drag is over the page. */
export async function showDrops() {
  let isOver = false;
  addEventListener('drop', () => isOver = true, { once: true });
  await extraStyles();
  const overlay = h('div', { class: 'drop' }, t('dropHere'));
  document.querySelector('.conversation').append(overlay);
  const hide = () => overlay.hidden = true;
  let timer;
  // A drag goes on as long as it tells so: not every way of ending one is told.
  const show = () => {
    overlay.hidden = false;
    clearTimeout(timer);
    timer = setTimeout(hide, 1000);
  };
  for (const kind of ['dragenter', 'dragover']) {
    addEventListener(kind, (event) => event.dataTransfer?.types.includes('Files') && show());
  }
  addEventListener('dragleave', (event) => event.relatedTarget === null && hide());
  addEventListener('dragend', hide);
  addEventListener('keydown', (event) => event.key === 'Escape' && hide());
  addEventListener('drop', hide);
  show();
  if (isOver) hide();
}
