// Whether something is wrong, judged from a status.

import { age, t } from './vocabulary.js';

const RANK = { error: 0, warning: 1, unknown: 2, ok: 3 };

export const worst = (states) => [...states].sort((one, other) => RANK[one] - RANK[other])[0] ?? 'ok';
export const byState = (one, other) => RANK[one] - RANK[other];

const LATE = 30_000;
const VERY_LATE = 300_000;
const DAY = 86_400_000;
const ACCOUNT_STATES = {
  connected: 'ok', idle: 'ok', connecting: 'warning', degraded: 'error', bad_credentials: 'error', stopped: 'error',
};
const REMEDIES = {
  degraded: 'remedyDegraded', bad_credentials: 'remedyBadCredentials', connecting: 'remedyConnecting', stopped: 'remedyStopped',
};

/** How an account's state is called by those who read it. */
export const accountWord = (account) => t(account.state) ?? account.state;
export const remedy = (account) => (REMEDIES[account.state] ? t(REMEDIES[account.state]) : '');
export const laneName = (lane) => `${lane.bridge} → ${lane.to}`;

/** A status judged: states by account, lane and address, and what is wrong, the worst first. */
export class Health {
  constructor(service) {
    this.now = service.now();
    this.isStale = service.isStale;
    this.status = service.status ?? { accounts: [], bridges: [], lanes: [], gaps: [], dead: 0 };
    this.accounts = new Map(this.status.accounts.map((each) => [each.name, each]));
    this.lanes = new Map(this.status.lanes.map((each) => [laneName(each), each]));
    this.gaps = this.status.gaps.filter((gap) => this.now - gap.end < DAY);
    this.troubles = this.#troubles();
  }

  /** What is said instead of `state` when nothing is known. */
  #known(state) {
    return this.isStale ? 'unknown' : state;
  }

  ofAccount(account) {
    return this.#known(ACCOUNT_STATES[account?.state] ?? 'unknown');
  }

  ofAddress(address) {
    return this.ofAccount(this.accounts.get(accountOf(address)));
  }

  /** How long a lane's oldest delivery has waited. */
  waits(lane) {
    return lane.oldest === undefined ? 0 : Math.max(0, this.now - lane.oldest);
  }

  whyStopped(lane) {
    return t('remedyLoop', age(Math.max(0, lane.stopped - this.now)));
  }

  ofLane(lane) {
    if (!lane) return this.#known('ok');
    if (lane.parked) return 'unknown';
    if (lane.stopped) return this.#known('error');
    const waits = this.waits(lane);
    return this.#known(waits >= VERY_LATE ? 'error' : waits >= LATE || lane.dead > 0 ? 'warning' : 'ok');
  }

  /** From one address to another of a bridge. A lane that is not listed is well. */
  ofLeg(bridge, from, to) {
    return worst([this.ofAddress(from), this.ofAddress(to), this.ofLane(this.lanes.get(laneName({ bridge, to })))]);
  }

  ofBridge(bridge) {
    const legs = bridge.routes.flatMap((route) => route.to.map((to) => this.ofLeg(bridge.name, route.from, to)));
    return worst([...legs, ...addresses(bridge).map((address) => this.ofAddress(address))]);
  }

  wordOfLane(lane) {
    return t(lane.parked ? 'parked' : lane.stopped && !this.isStale ? 'stopped' : this.ofLane(lane));
  }

  wordOfAccount(account) {
    return this.isStale ? t('unknown') : accountWord(account);
  }

  gapsOf(lane) {
    const bridge = this.status.bridges.find((each) => each.name === lane.bridge);
    const sources = new Set((bridge?.routes ?? []).filter((route) => route.to.includes(lane.to)).map((route) => route.from));
    return this.gaps.filter((gap) => sources.has(gap.address));
  }

  #troubles() {
    if (this.isStale) return [];
    const found = [];
    const held = new Set();
    const isLate = (lane) => this.waits(lane) >= LATE && !lane.parked && !lane.stopped;
    for (const account of this.status.accounts) {
      const state = this.ofAccount(account);
      if (state === 'ok') continue;
      // Lanes that wait for an account are no troubles of their own.
      const late = this.status.lanes.filter((lane) => isLate(lane) && accountOf(lane.to) === account.name);
      const waiting = late.length > 0 ? ` ${t('lanesWait', late.length, age(Math.max(...late.map((lane) => this.waits(lane)))))}` : '';
      if (state === 'error') late.forEach((lane) => held.add(lane));
      found.push({
        key: `account ${account.name}`, state, text: t('troubleAccount', account.name, accountWord(account)),
        more: `${account.reason ?? account.lastError ?? ''}${state === 'error' ? waiting : ''}`, link: { view: state === 'error' && late.length > 0 ? 'lanes' : 'overview' },
      });
    }
    for (const lane of this.status.lanes) {
      if (!lane.stopped || lane.parked) continue;
      found.push({
        key: `stopped ${laneName(lane)}`, state: 'error', text: t('troubleStopped', laneName(lane)), more: this.whyStopped(lane),
        link: { view: 'dead', bridge: lane.bridge, to: lane.to },
      });
    }
    for (const lane of this.status.lanes) {
      const waits = this.waits(lane);
      if (!isLate(lane) || held.has(lane)) continue;
      found.push({
        key: `lane ${laneName(lane)}`, state: this.ofLane(lane), text: t('troubleLane', laneName(lane), age(waits)),
        more: lane.error ?? '', link: { view: 'lanes' }, weight: waits,
      });
    }
    if (this.status.dead > 0) {
      found.push({ key: 'dead', state: 'warning', text: t('troubleDead', this.status.dead), link: { view: 'dead' } });
    }
    if (this.gaps.length > 0) {
      const longest = this.gaps.reduce((one, other) => (other.end - other.start > one.end - one.start ? other : one));
      found.push({
        key: 'gaps', state: 'warning', link: { view: 'lanes' }, text: t('troubleGaps', this.gaps.length),
        more: t('longestGap', longest.address, age(longest.end - longest.start)),
      });
    }
    return found.sort((one, other) => byState(one.state, other.state) || (other.weight ?? 0) - (one.weight ?? 0));
  }
}

export const accountOf = (address) => address.slice(0, address.indexOf(':'));

export function addresses(bridge) {
  const found = new Set();
  for (const route of bridge.routes) {
    found.add(route.from);
    for (const to of route.to) found.add(to);
  }
  return [...found];
}
