// One message's way: received, rules, deliveries with their attempts, copies.

import { bdi, h, plain, stateMark } from './dom.js';
import { number, list, t, words } from './vocabulary.js';

const STATES = { settled: 'ok', dead: 'error', pending: 'warning', sending: 'warning', waiting: 'unknown' };

/** Fills `place` with the trace of whatever `id` names. */
export async function showTrace(place, id, context) {
  const close = h('a', { class: 'quiet', href: context.address({ view: 'events' }), click: context.follow }, t('closeTrace'));
  const heading = h('h2', { tabindex: '-1' }, bdi(t('traceOf', plain(id, 100))));
  place.replaceChildren(h('header', {}, heading, close), h('p', { class: 'note' }, t('loading')));
  let trace;
  try {
    trace = await context.service.get('trace', { id });
  } catch (error) {
    if (error.status !== 404) context.fail(error);
    place.lastChild.textContent = error.status === 404 ? t('notFound') : t('failed');
    return;
  }
  place.lastChild.remove();
  place.append(...trace.messages.slice(0, 50).map((message) => ofMessage(message, context)));
  heading.focus();
}

function ofMessage(message, context) {
  return h('article', { class: 'card traced' },
    h('h3', {}, t('original'), ' ', bdi(message.message ?? ''), ' ', h('span', { class: 'provider' }, bdi(message.address))),
    message.bridges.length > 0 && h('p', { class: 'rules' },
      ...message.bridges.map((rule) => bdi(t('rule', rule.name, list.format(rule.mirror.map((each) => words.mirror[each] ?? each)), rule.author)))),
    h('ol', { class: 'steps' }, ...message.events.map((event) => ofEvent(event, context))),
    message.copies.length > 0 && h('h4', {}, t('copies')),
    message.copies.length > 0 && h('ul', { class: 'copies' }, ...message.copies.map(ofCopy)));
}

function ofEvent(event, context) {
  const body = h('div', { class: 'body' });
  const show = h('button', { type: 'button', class: 'quiet' }, t('showBody'));
  show.addEventListener('click', async () => {
    try {
      const { author, text, attachments } = await context.service.get('body', { address: event.address, key: event.key });
      body.replaceChildren(
        author && h('p', {}, `${t('author')}: `, bdi(author)),
        h('p', { class: 'said', dir: 'auto', tabindex: '0' }, text || t('noText')),
        ...attachments.map((name) => h('p', {}, bdi(name))));
      show.remove();
      body.querySelector('.said').focus();
    } catch (error) {
      context.fail(error);
    }
  });
  const hasBody = ['message', 'edit', 'reaction'].includes(event.kind);
  return h('li', {},
    h('p', { class: 'step' }, h('strong', {}, words.kinds[event.kind] ?? plain(event.kind)), ' ',
      context.clock(Date.parse(event.accepted), { isExact: true }), ' ', bdi(event.address), ' ', h('span', { class: 'key' }, bdi(event.key))),
    hasBody && show, hasBody && body,
    ...event.skipped.map((each) => h('p', { class: 'note' }, bdi(t('notCarried', each.bridge, each.why)))),
    h('ul', { class: 'deliveries' }, ...event.deliveries.map((delivery) => ofDelivery(delivery, context))));
}

function ofDelivery(delivery, context) {
  return h('li', { 'data-delivery': delivery.id },
    stateMark(STATES[delivery.state] ?? 'unknown', words.deliveryStates[delivery.state] ?? plain(delivery.state)), ' ',
    bdi(delivery.bridge), ' → ', bdi(delivery.to), ' ', context.clock(Date.parse(delivery.updated), { isExact: true }),
    h('span', { class: 'attempts' }, ` ${t('attempts')}: ${number(delivery.attempts)} · #${delivery.id}`),
    delivery.error && delivery.state !== 'settled' && h('p', { class: 'reason' }, bdi(delivery.error, 1000)),
    delivery.failures.length > 0 && h('details', {}, h('summary', {}, `${t('failures')} (${number(delivery.failures.length)})`),
      h('ul', {}, ...delivery.failures.map((failure) =>
        h('li', {}, context.clock(Date.parse(failure.time), { isExact: true }), ' ', bdi(failure.error, 1000))))));
}

function ofCopy(copy) {
  const marks = [copy.part > 0 && t('copyPart', copy.part + 1), copy.revision > 0 && t('revision', copy.revision), copy.deleted && t('copyDeleted')];
  return h('li', {}, bdi(copy.bridge), ' → ', bdi(copy.address), ' ', h('span', { class: 'key' }, bdi(copy.id)),
    ...marks.filter(Boolean).map((mark) => h('span', { class: 'tag' }, mark)));
}
