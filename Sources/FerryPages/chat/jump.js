// Going to a message that is not loaded, and coming back.

import { PAGE } from './room.js';
import { t } from './words.js';

export async function jumpTo(view, id) {
  const { timeline, api } = view;
  if (!timeline.byID.has(id)) {
    const round = ++view.round;
    view.isLoading = true;
    try {
      const limit = String(PAGE);
      const [before, message, after] = await Promise.all([
        api.messages(view.id, { before: id, limit }), api.message(view.id, id),
        api.messages(view.id, { order: 'oldest', after: id, limit })]);
      if (round !== view.round) return;
      timeline.replace([...before.messages.reverse(), message, ...after.messages],
        { hasOlder: Boolean(before.next), hasNewer: Boolean(after.next) });
      view.applyLater();
    } catch {
      view.announce(t('gone'));
      return;
    } finally {
      if (round === view.round) view.isLoading = false;
    }
  }
  const row = timeline.byID.get(id);
  const element = row && view.log.reveal(row, 1 / 3);
  element?.classList.add('found');
  setTimeout(() => element?.classList.remove('found'), 2000);
  view.showChip();
}

/** Loads the last page in place of what is shown. */
export async function toLatest(view) {
  const round = ++view.round;
  view.isLoading = true;
  const page = await view.api.messages(view.id, { limit: String(PAGE) }).catch(() => undefined);
  if (round !== view.round) return;
  view.isLoading = false;
  if (page) view.timeline.replace(page.messages.reverse(), { hasOlder: Boolean(page.next), hasNewer: false });
  view.applyLater();
}
