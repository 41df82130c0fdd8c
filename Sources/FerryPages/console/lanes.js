// Every lane: how much waits, for how long, and when it is tried again. The worst first.

import { bdi, h, plain, setText, StateMark } from './dom.js';
import { byState, laneName } from './health.js';
import { Plot } from './plot.js';
import { Table } from './table.js';
import { age, number, t } from './vocabulary.js';

export class Lanes {
  #context;
  #table;
  #rest = h('p', { class: 'note', hidden: true });

  constructor(context) {
    this.#context = context;
    let health;
    this.#table = new Table({
      caption: t('lanes'), key: laneName, empty: t('noLanes'),
      columns: [
        { title: t('state'), make: (row) => (row.mark = new StateMark()).element, fill: (cell, lane, row) => row.mark.set(health.ofLane(lane), health.wordOfLane(lane)) },
        {
          title: t('lane'), isHead: true, class: 'wide',
          make: ({ item }) => [
            h('a', { href: context.address({ view: 'dead', bridge: item.bridge, to: item.to }), click: context.follow }, bdi(item.bridge), ' → ', bdi(item.to)),
            h('span', { class: 'reason' })],
          fill: (cell, lane) => setText(cell.lastChild, lane.stopped ? health.whyStopped(lane) : lane.oldest === undefined ? '' : plain(lane.error ?? '')),
        },
        { title: t('pending'), class: 'number', fill: (cell, lane) => setText(cell, number(lane.pending)) },
        { title: t('oldest'), class: 'number', fill: (cell, lane) => setText(cell, lane.oldest === undefined ? '–' : age(health.waits(lane))) },
        { title: t('next'), class: 'number', fill: (cell, lane) => setText(cell, nextAttempt(lane, health)) },
        { title: t('waiting'), class: 'number', fill: (cell, lane) => setText(cell, number(lane.waiting)) },
        { title: t('deadShort'), class: 'number', fill: (cell, lane) => setText(cell, number(lane.dead)) },
        { title: t('gaps'), class: 'number', fill: (cell, lane) => setText(cell, number(health.gapsOf(lane).length)) },
        {
          title: t('lagPlot'), class: 'plot-cell',
          make: (row) => (row.plot = new Plot(t('lag'), age, { isSmall: true })).element,
          fill: (cell, lane, row) => row.plot.set(context.history.lane(lane).lag),
        },
      ],
    });
    this.#judge = (next) => { health = next; };
    this.element = h('section', {}, h('h2', {}, t('lanes')), this.#table.element, this.#rest);
  }

  #judge;

  update(health) {
    this.#judge(health);
    const lanes = [...health.status.lanes].sort((one, other) =>
      byState(health.ofLane(one), health.ofLane(other)) || health.waits(other) - health.waits(one) || other.dead - one.dead
      || laneName(one).localeCompare(laneName(other)));
    this.#table.update(lanes);
    const rest = (health.status.laneCount ?? 0) - lanes.length;
    this.#rest.hidden = rest <= 0;
    setText(this.#rest, t('lanesLeftOut', rest));
  }
}

function nextAttempt(lane, health) {
  if (lane.oldest === undefined) return '–';
  return lane.next === undefined || lane.next <= health.now ? t('now') : t('inTime', age(lane.next - health.now));
}
