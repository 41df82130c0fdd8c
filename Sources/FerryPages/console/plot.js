// Small plots of the last ten minutes.

import { h, s, setAttribute, setText } from './dom.js';
import { t } from './vocabulary.js';

const WIDTH = 120;
const HEIGHT = 30;
/** Samples that fit. */
export const SAMPLES = 120;

/** One line over time, with its last and its highest value in words. */
export class Plot {
  #label;
  #format;
  #line = s('path', { class: 'line' });
  #area = s('path', { class: 'area' });
  #now = h('span', { class: 'plot-now' });
  #most = h('span', { class: 'plot-most' });
  #drawing = s('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' },
    s('path', { class: 'base', d: `M0 ${HEIGHT - 1}H${WIDTH}` }), this.#area, this.#line);

  constructor(label, format, { isSmall = false } = {}) {
    this.#label = label;
    this.#format = format;
    this.element = isSmall
      ? h('span', { class: 'plot small' }, this.#drawing)
      : h('figure', { class: 'plot' },
        h('figcaption', {}, h('span', {}, label), this.#now, this.#most), this.#drawing);
  }

  set(values) {
    const most = Math.max(0, ...values);
    const last = values.at(-1) ?? 0;
    setText(this.#now, this.#format(last));
    setText(this.#most, t('most', this.#format(most)));
    setAttribute(this.#drawing, 'aria-label', t('plotText', this.#label, this.#format(last), this.#format(most)));
    const height = (value) => (HEIGHT - 2 - (most > 0 ? (value / most) * (HEIGHT - 4) : 0)).toFixed(1);
    const left = WIDTH - Math.max(0, values.length - 1) * (WIDTH / (SAMPLES - 1));
    const points = values.map((value, index) => `${(left + index * (WIDTH / (SAMPLES - 1))).toFixed(1)} ${height(value)}`);
    if (points.length === 1) points.unshift(`0 ${height(values[0])}`);
    setAttribute(this.#line, 'd', points.length ? `M${points.join('L')}` : '');
    setAttribute(this.#area, 'd', points.length ? `M${points[0].split(' ')[0]} ${HEIGHT}L${points.join('L')}L${WIDTH} ${HEIGHT}Z` : '');
  }
}

/** The samples of every account and lane, kept up to date from statuses. */
export class History {
  step = 5000;
  #tick = 0;
  #accounts = new Map();
  #lanes = new Map();

  async load(service) {
    const history = await service.get('history');
    this.step = history.step;
    this.#tick = history.tick;
    this.#accounts = new Map(history.accounts.map((each) => [each.name, { received: each.received, sent: each.sent }]));
    this.#lanes = new Map(history.lanes.map((each) => [`${each.bridge} ${each.to}`, { lag: each.lag, sent: each.sent }]));
  }

  /** Takes the newest sample from a status. False when samples were missed and the whole must be loaded. */
  take(status, now) {
    if (status.tick === this.#tick) return true;
    if (status.tick !== this.#tick + 1) return false;
    this.#tick = status.tick;
    for (const account of status.accounts) {
      const series = this.account(account.name);
      push(series.received, account.received);
      push(series.sent, account.sent);
    }
    for (const lane of status.lanes) {
      const series = this.lane(lane);
      push(series.lag, lane.oldest === undefined ? 0 : Math.max(0, now - lane.oldest));
      push(series.sent, lane.sent);
    }
    return true;
  }

  account(name) {
    if (!this.#accounts.has(name)) this.#accounts.set(name, { received: [], sent: [] });
    return this.#accounts.get(name);
  }

  lane({ bridge, to }) {
    const key = `${bridge} ${to}`;
    if (!this.#lanes.has(key)) this.#lanes.set(key, { lag: [], sent: [] });
    return this.#lanes.get(key);
  }

  received() {
    return sum([...this.#accounts.values()].map((each) => each.received));
  }

  sent() {
    return sum([...this.#accounts.values()].map((each) => each.sent));
  }

  /** The longest wait of any lane at each sample. */
  lag() {
    return combine([...this.#lanes.values()].map((each) => each.lag), Math.max);
  }

  /** A count a step as a rate. */
  perMinute(values) {
    return values.map((value) => Math.round((value * 60_000) / this.step));
  }
}

function push(values, value) {
  values.push(value ?? 0);
  if (values.length > SAMPLES) values.shift();
}

const sum = (series) => combine(series, (one, other) => one + other);

/** Series that end at the same time as one. */
function combine(series, join) {
  const length = Math.max(0, ...series.map((each) => each.length));
  return Array.from({ length }, (_, index) =>
    series.reduce((value, each) => join(value, each[each.length - length + index] ?? 0), 0));
}
