// The server's API: requests, uploads and the live socket. What it offers is in openapi.yaml.

/** A request that failed. `isRefused`: the server said no, and asking again would not help. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }

  get isRefused() {
    return this.status >= 400 && this.status < 500 && ![401, 408, 425, 429].includes(this.status);
  }
}

export const path = (...parts) => `/v1/${parts.map(encodeURIComponent).join('/')}`;

export class Api {
  /** `onUnauthorized` is called when the token is refused. */
  constructor(token, name) {
    this.token = token;
    this.me = { id: name, name };
    this.onUnauthorized = () => {};
  }

  async request(method, url, body, options = {}) {
    const headers = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    try {
      const response = await (method === 'GET' && this.#early(url) || fetch(url, {
        method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: 'no-store', ...options }));
      if (!response.ok) throw await this.#refusal(response);
      if (options.blob) return await response.blob();
      return response.status === 204 ? undefined : await response.json();
    } catch (error) {
      if (error instanceof ApiError || error.name === 'AbortError') throw error;
      // Nobody answered, or the answer broke off.
      throw new ApiError(0, 'network', error.message);
    }
  }

  async #refusal(response) {
    const { error = {} } = await response.json().catch(() => ({}));
    if (response.status === 401) this.onUnauthorized();
    return new ApiError(response.status, error.code ?? 'unknown', error.message ?? response.statusText);
  }

  /** What was asked for before there was this: good once, and for the same question. */
  #early(url) {
    const { early } = window;
    window.early = undefined;
    return early?.url === url && early.token === this.token ? early.answer : undefined;
  }

  /** All rooms, page by page, the sequence up to which they are told, and the user the token is bound to. */
  async rooms() {
    let rooms = [], after, sequence, user;
    do {
      const query = new URLSearchParams({ user: this.me.id, limit: '200', ...(after && { after }) });
      const page = await this.request('GET', `${path('rooms')}?${query}`);
      rooms = rooms.concat(page.rooms);
      after = page.next;
      sequence ??= page.sequence;
      user = page.user;
    } while (after && rooms.length < 2000);
    return { rooms, sequence, user };
  }

  room(room) { return this.request('GET', `${path('rooms', room)}?${new URLSearchParams({ user: this.me.id })}`); }
  makeRoom(room) { return this.request('PUT', path('rooms', room), {}); }

  /** A page of a room's messages. A room that is not there yet is made by the first who comes. */
  async messages(room, query) {
    try {
      return await this.request('GET', `${path('rooms', room, 'messages')}?${new URLSearchParams(query)}`);
    } catch (error) {
      if (error.status !== 404) throw error;
      return { messages: [] };
    }
  }

  /** The last page of a room that I open, with its title and how far I have read. */
  opened(room, limit) { return this.messages(room, { limit: String(limit), user: this.me.id }); }

  message(room, id) { return this.request('GET', path('rooms', room, 'messages', id)); }
  post(room, draft) { return this.request('POST', path('rooms', room, 'messages'), { ...draft, author: this.me }); }
  edit(room, id, change) { return this.request('PATCH', path('rooms', room, 'messages', id), change); }
  remove(room, id) { return this.request('DELETE', path('rooms', room, 'messages', id), { by: this.me }); }
  members(room) { return this.request('GET', path('rooms', room, 'members')); }
  join(room) { return this.request('PUT', path('rooms', room, 'members', this.me.id), { name: this.me.name }); }
  reads(room) { return this.request('GET', path('rooms', room, 'reads')); }

  mark(room, id, state) {
    return this.request('PUT', path('rooms', room, 'reads', this.me.id), { id, state, name: this.me.name });
  }

  react(room, id, emoji, on) {
    return this.request(on ? 'PUT' : 'DELETE', path('rooms', room, 'messages', id, 'reactions', emoji), { by: this.me });
  }

  file(sha256, signal) { return this.request('GET', path('files', sha256), undefined, { blob: true, signal, cache: 'default' }); }
}

/**
 * The socket that tells what happens in all rooms. It comes back by itself, and then is told everything since the last
 * event it saw.
 *
 * `on.event(event, sequence)`, `on.typing({ room, by, on })`, `on.open()`, `on.closed()`, `on.reset()` when the server's
 * log is not the one that was followed, so that everything has to be read anew.
 */
export class Live {
  #socket;
  #timer;
  #attempts = 0;
  #lastHeard = 0;
  #isStopped = false;

  constructor(api, on) {
    this.api = api;
    this.on = on;
    this.sequence = undefined;
    this.isOpen = false;
    addEventListener('online', () => this.#hurry());
    document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && this.#hurry());
  }

  /** Starts, to be told what comes after `sequence`. */
  start(sequence) {
    this.sequence = sequence;
    this.#connect();
  }

  stop() {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  say(message) {
    if (this.isOpen) this.#socket.send(JSON.stringify(message));
  }

  #connect() {
    clearTimeout(this.#timer);
    if (this.#isStopped) return;
    const url = new URL(`/v1/live?${new URLSearchParams({ token: this.api.token })}`, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ type: 'subscribe', all: true, after: this.sequence }));
    socket.onmessage = (message) => socket === this.#socket && this.#take(JSON.parse(message.data));
    socket.onclose = () => socket === this.#socket && this.#closed();
  }

  #take(frame) {
    this.#lastHeard = Date.now();
    switch (frame.type) {
      case 'subscribed':
        this.#attempts = 0;
        this.isOpen = true;
        this.on.open();
        break;
      case 'event':
        this.sequence = frame.sequence;
        this.on.event(frame.event, frame.sequence);
        break;
      case 'typing':
        this.on.typing(frame);
        break;
      case 'error':
        if (frame.code === 'conflict') this.on.reset();
        break;
    }
  }

  #closed() {
    this.isOpen = false;
    this.on.closed();
    if (this.#isStopped) return;
    // Half of it is chance, so that not everybody comes back in the same instant.
    const wait = Math.min(30_000, 500 * 2 ** this.#attempts) * (0.5 + Math.random() / 2);
    this.#attempts += 1;
    this.#timer = setTimeout(() => this.#connect(), wait);
  }

  /** Tries at once. A socket that was silent for long may be dead without knowing it: it is replaced. */
  #hurry() {
    if (this.#isStopped || (this.isOpen && Date.now() - this.#lastHeard < 60_000)) return;
    if (!this.isOpen && this.#socket?.readyState === WebSocket.CONNECTING) return;
    this.isOpen = false;
    this.#attempts = 0;
    const old = this.#socket;
    this.#connect();
    old?.close();
  }
}
