// What I do that the server has yet to hear of: messages on their way, and reactions.

const STORED = 'ferry.unsent';

/**
 * The messages of one room on their way, sent one after the other in the order in which they were written. Each has a
 * client id, so that sending it again does no harm; they are kept until the server has them, through reloads too.
 */
export class Outbox {
  #drafts = [];
  #isRunning = false;
  #wake;

  constructor(api, room, timeline) {
    this.api = api;
    this.room = room;
    this.timeline = timeline;
    this.key = `${STORED}:${api.me.id}:${room}`;
    try {
      this.#drafts = JSON.parse(localStorage.getItem(this.key)) ?? [];
    } catch { /* not ours: begin anew */ }
  }

  /** Shows what an earlier visit left, and goes on sending it. */
  resume() {
    for (const draft of this.#drafts) this.timeline.sending(draft, draft.isFailed ? 'failed' : 'sending');
    this.#run();
  }

  send(content) {
    const draft = { client_id: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, time: Date.now(), ...content };
    this.#drafts.push(draft);
    this.#store();
    const row = this.timeline.sending(draft, 'sending');
    this.#run();
    return row;
  }

  /** Tries one again that was refused, or all at once that wait for the connection. */
  retry(clientID) {
    const draft = this.#drafts.find((each) => each.client_id === clientID);
    if (draft) draft.isFailed = false;
    this.timeline.setState(clientID, 'sending');
    this.#store();
    this.hurry();
    this.#run();
  }

  discard(clientID) {
    this.timeline.withdraw(clientID);
    this.#drop(clientID);
    this.hurry();
  }

  /** The connection may be back. */
  hurry() { this.#wake?.(); }

  /** The server turned out to have it. */
  arrived(clientID) {
    if (this.#drafts.some((each) => each.client_id === clientID)) this.#drop(clientID);
  }

  #drop(clientID) {
    this.#drafts = this.#drafts.filter((each) => each.client_id !== clientID);
    this.#store();
  }

  #store() {
    if (this.#drafts.length > 0) localStorage.setItem(this.key, JSON.stringify(this.#drafts));
    else localStorage.removeItem(this.key);
  }

  async #run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    let attempts = 0;
    for (let draft; (draft = this.#drafts.find((each) => !each.isFailed));) {
      const { client_id, time, isFailed, ...content } = draft;
      try {
        const message = await this.api.post(this.room, { client_id, ...content });
        attempts = 0;
        this.#drop(client_id);
        this.timeline.arrived(message);
      } catch (error) {
        if (!this.#drafts.includes(draft)) continue;
        if (error.isRefused) {
          draft.isFailed = true;
          this.#store();
          this.timeline.setState(client_id, 'failed');
        } else {
          // Nobody knows whether it arrived: it is sent again under the same id, and those after it wait.
          this.timeline.setState(client_id, 'waiting');
          await this.#pause(Math.min(30_000, 1000 * 2 ** attempts) * (0.5 + Math.random() / 2));
          attempts += 1;
        }
      }
    }
    this.#isRunning = false;
  }

  #pause(milliseconds) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Reactions as I wish them, shown at once, until the server has answered. */
export class Wishes {
  /** Message id to emoji to whether I want it. */
  #wishes = new Map();

  constructor(api, room, timeline, onFailure) {
    Object.assign(this, { api, room, timeline, onFailure });
  }

  /** The reactions of a row as they are to be seen: `{ emoji, users, isMine }`. */
  seen(row) {
    const { me } = this.api;
    const wishes = this.#wishes.get(row.message.id) ?? new Map();
    const known = row.message.deleted ? [] : row.message.reactions ?? [];
    const emojis = new Set([...known.map((each) => each.emoji), ...wishes.keys()]);
    return [...emojis].map((emoji) => {
      let users = known.find((each) => each.emoji === emoji)?.users ?? [];
      const wish = wishes.get(emoji);
      if (wish !== undefined) users = [...users.filter((user) => user.id !== me.id), ...(wish ? [me] : [])];
      return { emoji, users, isMine: users.some((user) => user.id === me.id) };
    }).filter(({ emoji, users }) => users.length > 0 || wishes.has(emoji));
  }

  async toggle(row, emoji) {
    const { id } = row.message;
    const wishes = this.#wishes.get(id) ?? new Map();
    this.#wishes.set(id, wishes);
    const isUnderWay = wishes.has(emoji);
    wishes.set(emoji, !this.seen(row).find((each) => each.emoji === emoji)?.isMine);
    this.timeline.view.updated(row);
    if (isUnderWay) return;
    // One request at a time; a change of mind meanwhile is sent after it.
    try {
      for (let sent; sent !== wishes.get(emoji);) {
        sent = wishes.get(emoji);
        await this.api.react(this.room, id, emoji, sent);
        this.timeline.reacted(id, emoji, this.api.me, sent);
      }
    } catch {
      this.onFailure();
    }
    wishes.delete(emoji);
    if (wishes.size === 0) this.#wishes.delete(id);
    this.timeline.view.updated(row);
  }
}
