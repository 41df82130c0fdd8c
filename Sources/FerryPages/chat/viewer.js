// A picture as large as the window allows, and files saved.

import { h, plain } from './text.js';
import { t } from './words.js';

/** Saves a file under its name, whatever is in it. `attachments` has its bytes. */
export async function save(attachments, file) {
  h('a', { href: await attachments.url(file), download: plain(file.name) || 'file' }).click();
}

/** Shows a picture. The focus goes back to `from`. */
export async function enlarge(attachments, file, from) {
  const image = h('img', { alt: plain(file.name), src: await attachments.url(file) });
  const dialog = h('dialog', { class: 'viewer', 'aria-label': t('enlarge') },
    h('div', { class: 'stage' }, image),
    h('footer', {}, h('span', { class: 'caption' }, h('bdi', {}, plain(file.name))),
      h('button', { type: 'button', class: 'save', click: () => save(attachments, file) }, t('savePicture')),
      h('button', { type: 'button', class: 'shut', click: () => dialog.close() }, t('close'))));
  dialog.addEventListener('close', () => {
    dialog.remove();
    from?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
}
