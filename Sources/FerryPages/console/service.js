// The relay: asking it, and following what it is doing.

/** What the relay refused, and why. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** After so long without data nothing is known any more. */
export const STALE_AFTER = 15_000;

export class Service {
  #token;
  #abort;
  #attempts = 0;
  #timer;
  #lastByte = 0;
  on = { status() {}, refused() {} };
  /** The last status, and when it came by this browser's clock. */
  status;
  heard = 0;
  /** What is to be added to this browser's clock to have the relay's. */
  #skew = 0;

  constructor(token) {
    this.#token = token;
  }

  /** The time by the relay's clock. */
  now() {
    return Date.now() + this.#skew;
  }

  get silence() {
    return Date.now() - this.heard;
  }

  get isStale() {
    return !this.status || this.silence > STALE_AFTER;
  }

  async #send(path, options = {}) {
    const response = await fetch(path, {
      cache: 'no-store', credentials: 'omit', redirect: 'error', ...options,
      headers: { Authorization: `Bearer ${this.#token}`, ...options.headers },
    });
    if (response.ok) return response;
    const answer = await response.json().catch(() => ({}));
    const refusal = new Refusal(response.status, answer.error?.message ?? response.statusText);
    if (response.status === 401) this.on.refused(refusal);
    throw refusal;
  }

  async get(path, query = {}) {
    const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== '')).toString();
    return (await this.#send(`/api/${path}${text ? `?${text}` : ''}`)).json();
  }

  #post(path, body, signal) {
    return this.#send(`/api/${path}`, {
      method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' }, signal,
    });
  }

  async post(path, body) {
    return (await this.#post(path, body)).json();
  }

  /** Hands over each line of the answer as it comes. */
  async lines(path, body, signal, take) {
    const response = await this.#post(path, body, signal);
    await pieces(response.body, '\n', (line) => line && take(JSON.parse(line)));
  }

  /** Follows the relay until `stop`, through lost connections. */
  follow() {
    this.#connect();
    addEventListener('online', this.#hurry);
    document.addEventListener('visibilitychange', this.#hurry);
    // A connection that died without a word is replaced.
    this.#timer = setInterval(() => Date.now() - this.#lastByte > 10_000 && this.#hurry(), 5000);
  }

  stop() {
    clearInterval(this.#timer);
    removeEventListener('online', this.#hurry);
    document.removeEventListener('visibilitychange', this.#hurry);
    this.#abort?.abort();
    this.#abort = undefined;
  }

  #hurry = () => {
    if (document.visibilityState === 'hidden' || Date.now() - this.#lastByte < 5000) return;
    this.#attempts = 0;
    this.#connect();
  };

  async #connect() {
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    this.#lastByte = Date.now();
    try {
      const response = await this.#send('/api/live', { signal: abort.signal });
      await pieces(response.body, '\n\n', (event) => this.#take(event));
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return;
    }
    if (this.#abort !== abort) return;
    // Half of it is chance, so that not everybody comes back in the same instant.
    const wait = Math.min(10_000, 500 * 2 ** this.#attempts) * (0.5 + Math.random() / 2);
    this.#attempts += 1;
    setTimeout(() => this.#abort === abort && this.#connect(), wait);
  }

  #take(event) {
    const data = event.split('\n').find((line) => line.startsWith('data: '));
    if (!data) return;
    const status = JSON.parse(data.slice(6));
    this.#attempts = 0;
    this.#lastByte = this.heard = Date.now();
    this.#skew = status.time - Date.now();
    this.status = status;
    this.on.status();
  }
}

/** Splits a stream of text. */
async function pieces(stream, separator, take) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split(separator);
    rest = parts.pop();
    for (const part of parts) take(part);
  }
}
