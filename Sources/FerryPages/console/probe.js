// A test message through a bridge, and how long each leg takes.

import { bdi, h, openDialog, plain, say, setText, StateMark } from './dom.js';
import { addresses } from './health.js';
import { list, number, t } from './vocabulary.js';

/** Asks where to post it, warns that people will see it, and shows what comes of it. */
export function openTest(bridge, context) {
  const sources = bridge.routes.map((route) => route.from);
  const choice = h('select', { name: 'from' }, ...sources.map((from) => h('option', { value: from }, plain(from))));
  const warning = h('p', { class: 'ask' }, t('testAsk', list.format(addresses(bridge).map((each) => plain(each)))));
  const send = h('button', { type: 'submit', class: 'primary' }, t('testSend'));
  const cancel = h('button', { type: 'button', class: 'quiet' }, t('cancel'));
  const summary = h('p', { class: 'summary', role: 'status' });
  const results = h('ul', { class: 'results' });
  const form = h('form', { class: 'probe' }, h('label', {}, h('span', {}, t('testFrom')), choice), warning, summary, results,
    h('div', { class: 'answers' }, cancel, send));
  const dialog = openDialog([form], t('testTitle', bridge.name), 'test-dialog');
  const abort = new AbortController();
  cancel.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => abort.abort());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    send.remove();
    choice.disabled = true;
    setText(cancel, t('close'));
    cancel.focus();
    await run(bridge, choice.value, results, summary, context, abort.signal);
  });
}

async function run(bridge, from, results, summary, context, signal) {
  const places = bridge.routes.find((route) => route.from === from)?.to ?? [];
  const steps = new Map();
  const add = (key, ...name) => {
    const mark = new StateMark();
    const reason = h('p', { class: 'reason' });
    mark.set('unknown', t('testWaiting'));
    steps.set(key, { mark, reason });
    results.append(h('li', { 'data-step': key }, h('span', { class: 'step-name' }, ...name), mark.element, reason));
  };
  add('posted', t('testPosted'), ' ', bdi(from));
  add('received', t('testReceived'));
  for (const place of places) add(`leg ${place}`, '→ ', bdi(place));
  setText(summary, t('testing'));
  let arrived = 0;
  const settle = (key, line) => {
    const step = steps.get(key);
    if (!step) return;
    step.mark.set(line.reason ? 'error' : 'ok', line.after === undefined ? t(line.reason ? 'error' : 'ok') : t('milliseconds', number(line.after)));
    setText(step.reason, plain(line.reason ?? '', 1000));
    steps.delete(key);
  };
  try {
    await context.service.lines('test', { bridge: bridge.name, from }, signal, (line) => {
      if (line.kind === 'leg' && !line.reason) arrived += 1;
      settle(line.kind === 'leg' ? `leg ${line.to}` : line.kind, line);
    });
  } catch (error) {
    if (signal.aborted) return;
    const [first] = steps.keys();
    if (first) settle(first, { reason: error.message });
  }
  // What never got a chance has no state of its own.
  for (const { mark } of steps.values()) mark.set('unknown', t('unknown'));
  setText(summary, t('testDone', number(arrived), number(places.length)));
  say(summary.textContent);
}
