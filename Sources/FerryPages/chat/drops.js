// Files dragged over the page: a sign that they may be dropped, and what is done with them.

import { h, extraStyles } from './text.js';
import { t } from './words.js';

/** Begins to take drops; called while the first drag is over the page. */
export async function takeDrops(attach) {
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
  addEventListener('drop', (event) => {
    hide();
    if (event.dataTransfer.files.length > 0) attach(event.dataTransfer.files);
  });
  show();
}
