// Bridges, drawn: addresses as boxes, directions as arrows, the state as colour, line and sign.

import { bdi, h, plain, s, setText, shape, StateMark } from './dom.js';
import { accountOf, addresses } from './health.js';
import { Table } from './table.js';
import { list, number, t, words } from './vocabulary.js';

/** On a phone the map is drawn narrower rather than shrunk. */
const isNarrow = innerWidth < 560;
const BOX = { width: isNarrow ? 132 : 148, height: 46 };
/** With more addresses than this nobody could follow the arrows: the table has to do. */
const MOST = 12;

/** One bridge: its map, the table that says the same, and what can be done with it. */
export class BridgeMap {
  #bridge;
  #state = new StateMark();
  #nodes = new Map();
  #legs = [];
  #table;

  constructor(bridge, { test }) {
    this.#bridge = bridge;
    const places = addresses(bridge);
    const carried = list.format(bridge.mirror.map((each) => words.mirror[each] ?? each));
    this.#table = new Table({
      caption: bridge.name, key: (leg) => `${leg.from} ${leg.to}`, empty: '',
      columns: [
        { title: t('state'), make: (row) => (row.mark = new StateMark()).element, fill: (cell, leg, row) => row.mark.set(leg.state, t(leg.state)) },
        { title: t('from'), make: (row) => bdi(row.item.from) },
        { title: t('to'), make: (row) => bdi(row.item.to) },
        { title: t('pending'), class: 'number', fill: (cell, leg) => setText(cell, number(leg.pending)) },
      ],
    });
    const details = h('details', { class: 'legs' }, h('summary', {}, t('asTable')), this.#table.element);
    details.open = places.length > MOST;
    this.element = h('article', { class: 'card bridge', 'data-bridge': bridge.name },
      h('header', {}, h('h3', {}, bridge.name), this.#state.element,
        test && h('button', { type: 'button', class: 'quiet test', click: () => test(bridge) }, t('test'))),
      places.length <= MOST && h('div', { class: 'map' }, this.#draw(places)),
      h('p', { class: 'carries' }, t('mirrors', carried)), details);
  }

  #draw(places) {
    const { width, height, at } = layout(places);
    const legs = this.#bridge.routes.flatMap((route) => route.to.map((to) => ({ from: route.from, to })));
    for (const leg of legs) {
      const { line, head, middle } = arrow(at.get(leg.from), at.get(leg.to));
      const sign = s('g', { class: 'sign-at', transform: `translate(${middle.x - 8} ${middle.y - 8})` });
      this.#legs.push({ ...leg, sign, element: s('g', { class: 'leg' }, s('path', { class: 'way', d: line }), s('path', { class: 'head', d: head }), sign) });
    }
    for (const [place, { x, y }] of at) {
      const account = accountOf(place);
      const mark = s('g', { class: 'mark', transform: `translate(${BOX.width - 24} 7)` });
      const element = s('g', { class: 'node', transform: `translate(${x - BOX.width / 2} ${y - BOX.height / 2})` },
        s('title', {}, plain(place)),
        s('rect', { width: BOX.width, height: BOX.height, rx: 10 }),
        s('text', { class: 'account', x: 12, y: 20 }, short(account, isNarrow ? 12 : 14)),
        s('text', { class: 'channel', x: 12, y: 37 }, short(place.slice(account.length + 1), isNarrow ? 17 : 19)), mark);
      this.#nodes.set(place, { element, mark });
    }
    return s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': t('mapOf', this.#bridge.name), style: { maxWidth: `${width}px` } },
      ...this.#legs.map((leg) => leg.element), ...[...this.#nodes.values()].map((node) => node.element));
  }

  update(health) {
    const state = health.ofBridge(this.#bridge);
    this.#state.set(state, t(state));
    for (const [place, node] of this.#nodes) mark(node.element, node.mark, 'node', health.ofAddress(place), true);
    for (const leg of this.#legs) mark(leg.element, leg.sign, 'leg', health.ofLeg(this.#bridge.name, leg.from, leg.to), false);
    this.#table.update(this.#bridge.routes.flatMap((route) => route.to.map((to) => ({
      from: route.from, to, state: health.ofLeg(this.#bridge.name, route.from, to),
      pending: health.lanes.get(`${this.#bridge.name} → ${to}`)?.pending ?? 0,
    }))));
  }
}

/** Gives an element its state; what is well needs no sign on an arrow. */
function mark(element, place, name, state, always) {
  if (element.dataset.state === state) return;
  element.dataset.state = state;
  element.setAttribute('class', `${name} ${state}`);
  place.replaceChildren();
  if (!always && state === 'ok') return;
  const sign = shape(state);
  sign.setAttribute('width', '16');
  sign.setAttribute('height', '16');
  place.append(sign);
}

const short = (text, length) => {
  const characters = [...plain(text)];
  return characters.length > length ? `${characters.slice(0, length - 1).join('')}…` : characters.join('');
};

/** Two side by side, more on an ellipse. */
function layout(places) {
  const count = places.length;
  const width = isNarrow ? 340 : count > 6 ? 640 : 520;
  const height = count === 2 ? 90 : count <= 4 ? 250 : 130 + count * (isNarrow ? 52 : 36);
  const at = new Map();
  places.forEach((place, index) => {
    if (count <= 2) {
      at.set(place, { x: index === 0 ? BOX.width / 2 + 4 : width - BOX.width / 2 - 4, y: height / 2 });
      return;
    }
    // Four stand in the corners.
    const angle = (2 * Math.PI * index) / count - Math.PI / 2 - (count === 4 ? Math.PI / 4 : 0);
    const stretch = count === 4 ? Math.SQRT2 : 1;
    at.set(place, {
      x: width / 2 + Math.cos(angle) * stretch * (width / 2 - BOX.width / 2 - 4),
      y: height / 2 + Math.sin(angle) * stretch * (height / 2 - BOX.height / 2 - 4),
    });
  });
  return { width, height, at };
}

/** A bent line between two boxes, so that both directions can be told apart. */
function arrow(from, to) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const bend = 12 + length / 40;
  const control = {
    x: (from.x + to.x) / 2 - ((to.y - from.y) / length) * bend * 2,
    y: (from.y + to.y) / 2 + ((to.x - from.x) / length) * bend * 2,
  };
  const point = (part) => ({
    x: (1 - part) ** 2 * from.x + 2 * part * (1 - part) * control.x + part ** 2 * to.x,
    y: (1 - part) ** 2 * from.y + 2 * part * (1 - part) * control.y + part ** 2 * to.y,
  });
  const isIn = (box, { x, y }, room) => Math.abs(x - box.x) < BOX.width / 2 + room && Math.abs(y - box.y) < BOX.height / 2 + room;
  const points = Array.from({ length: 101 }, (_, index) => point(index / 100)).filter((each) => !isIn(from, each, 2) && !isIn(to, each, 5));
  if (points.length < 2) return { line: '', head: '', middle: control };
  const end = points.at(-1);
  const before = points.at(-2);
  const angle = Math.atan2(end.y - before.y, end.x - before.x);
  const corner = (turn) => `${(end.x - 10 * Math.cos(angle + turn)).toFixed(1)} ${(end.y - 10 * Math.sin(angle + turn)).toFixed(1)}`;
  return {
    line: `M${points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}`,
    head: `M${end.x.toFixed(1)} ${end.y.toFixed(1)}L${corner(0.45)}L${corner(-0.45)}Z`,
    // Off the middle, where the arrows of others cross.
    middle: points[Math.floor(points.length * 0.36)],
  };
}
