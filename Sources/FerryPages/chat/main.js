// Begins: who is it, which room, and what the page's buttons do.

import { Api, Live } from './net.js';
import { RoomView, PAGE } from './room.js';
import { Rooms } from './rooms.js';
import { Composer } from './composer.js';
import { Attachments } from './row.js';
import { Announcer, isLooking, showTitle } from './reading.js';
import { Actions } from './actions.js';
import { Names, isVisible, extraStyles, later } from './text.js';
import { t, translate } from './words.js';

const page = document.body;
const $ = (selector) => page.querySelector(selector);
translate(page);

// The token leaves the address at once, and stays in this tab. All ports of a host share their cookies, but not this.
const query = new URLSearchParams(location.search);
const given = { name: query.get('name'), room: query.get('room'), token: query.get('token') };
if (given.token !== null) {
  query.delete('token');
  history.replaceState(null, '', query.size > 0 ? `?${query}` : location.pathname);
  keep(sessionStorage, 'token', given.token);
}
const remembered = {
  token: given.token ?? sessionStorage.getItem('ferry.token'),
  name: given.name ?? localStorage.getItem('ferry.name'),
  room: given.room ?? localStorage.getItem('ferry.room') ?? 'lobby',
};

if (remembered.token && isVisible(remembered.name ?? '')) start(remembered);
else signIn(remembered);

// MARK: Signing in

async function signIn(known, problem, then = start) {
  $('#app').hidden = true;
  const [{ showSignIn }] = await Promise.all([import('./sign-in.js'), extraStyles()]);
  showSignIn(known, problem, then);
}

/** Shows the page. An app that has begun cannot begin again: after another sign-in the page is loaded anew. */
async function start({ name, token, room }) {
  const api = new Api(token, name);
  // What is to be seen first comes in one request; the list of rooms may take longer.
  const opening = api.opened(room, PAGE);
  const listing = api.rooms();
  listing.catch(() => {});
  const frame = $('#app');
  // What is here in a moment needs no frame of its own that says it is loading; until it is here, nothing can be done.
  const showing = setTimeout(() => {
    frame.inert = true;
    frame.hidden = false;
  }, 100);
  const unlessRefused = (error) => error.status === 401 ? Promise.reject(error) : {};
  try {
    // Where the room alone cannot be read, it says so itself.
    const page = await opening.catch(unlessRefused);
    // Of a room that is not there yet nobody is told who they are.
    const { user } = page.title === undefined ? await listing.catch(unlessRefused) : page;
    if (user) api.me.id = user;
  } catch (error) {
    if (error.status !== 401) throw error;
    return signIn({ name, room, token: '' }, t('wrongToken'));
  } finally {
    clearTimeout(showing);
    frame.inert = false;
  }
  frame.hidden = false;
  const app = new App(api);
  later(() => {
    // Whoever has signed out by then is not signed in again by the next visit.
    if (app.isOver) return;
    keep(sessionStorage, 'token', token);
    keep(localStorage, 'name', name);
  });
  api.onUnauthorized = () => {
    app.stop();
    sessionStorage.removeItem('ferry.token');
    signIn({ name, room: app.room.id }, t('wrongToken'), (known) => {
      for (const key of ['name', 'room']) keep(localStorage, key, known[key]);
      keep(sessionStorage, 'token', known.token);
      location.replace(location.pathname);
    });
  };
  app.begin(room, listing, opening);
}

/** Remembers something, where the browser lets it. */
function keep(storage, key, value) {
  try { storage.setItem(`ferry.${key}`, value); } catch { /* full, or not allowed */ }
}

/** The room to return to: by this address, or without one. */
function remember(room) {
  keep(localStorage, 'room', room);
  const query = new URLSearchParams(location.search);
  query.set('room', room);
  history.replaceState(null, '', `?${query}`);
}

// MARK: The page

class App {
  #offlineTimer;

  constructor(api) {
    this.api = api;
    this.names = new Names();
    this.names.of(api.me);
    this.attachments = new Attachments(api);
    this.announcer = new Announcer($('#status'));
    this.live = new Live(api, {
      event: (event, sequence) => this.#event(event, sequence),
      typing: (typing) => this.room.typing(typing),
      open: () => this.#connected(),
      closed: () => this.#disconnected(),
      reset: () => this.#reload(),
    });
    const context = { me: api.me, names: this.names };
    this.rooms = new Rooms($('.side'), context, {
      open: (id) => this.open(id),
      make: (name) => this.#make(name),
      changed: () => this.room && this.#showTitle(),
    });
    this.room = new RoomView(this, $('.conversation'));
    this.composer = new Composer($('.composer'), api, {
      names: this.names, members: () => this.room.membersForCompletion(), recent: () => this.room.recentAuthors(),
      mentioned: (text) => this.room.mentioned(text), announce: (text) => this.announcer.say(text),
    }, {
      send: (draft) => this.#send(draft),
      edit: (row, text, revision) => this.actions.saveEdit(row, text, revision),
      editLast: () => this.actions.editLast(),
      target: (row) => this.room.log.makeVisible(row),
      typing: (on) => this.live.say({ type: 'typing', room: this.room.id, by: api.me, on }),
    });
    this.actions = new Actions(this);
    this.#buttons();
    this.#midnight();
  }

  /** Opens a room, shows the list when it is here, and follows what happens. `opening`: its page, on its way. */
  async begin(room, listing, opening) {
    if (this.isOver) return;
    this.open(room, opening);
    try {
      const { rooms, sequence, user } = await listing;
      if (user) this.api.me.id = user;
      const page = await opening?.catch(() => undefined);
      this.rooms.replace(rooms, sequence);
      this.room.titleChanged();
      this.live.start(Math.min(sequence, page?.sequence ?? sequence));
    } catch (error) {
      if (error.status === 401) this.api.onUnauthorized();
      else setTimeout(() => this.#reload(), 3000);
    }
  }

  /** Does no more on its own. */
  stop() {
    this.isOver = true;
    this.api.onUnauthorized = () => {};
    this.live.stop();
  }

  /** Reads everything anew. */
  #reload() { this.begin(this.room.id, this.api.rooms()); }

  open(id, opening) {
    later(() => remember(id));
    this.composer.stopTyping();
    this.search?.close();
    // Before the room, which measures what it draws.
    $('#app').classList.add('in-room');
    this.room.open(id, opening);
    this.rooms.open(id);
    this.composer.open(id);
    // Not on a phone, where it calls up the keyboard, nor in a frame, which has neighbours.
    if (window.top === window && !this.composer.isCoarse) this.composer.focus();
    this.#showTitle();
  }

  async #make(name) {
    try {
      this.rooms.put(await this.api.makeRoom(name));
      this.open(name);
      this.composer.focus();
    } catch (error) {
      this.announcer.say(error.message);
    }
  }

  async #send(draft) {
    if (this.room.timeline.hasNewer) await this.room.toLatest();
    this.room.outbox.send(draft);
    this.room.log.toBottom();
  }

  #event(event, sequence) {
    const by = event.message?.author ?? event.by;
    const isMine = by?.id === this.api.me.id;
    if (by) this.names.of(by);
    this.rooms.event(event, sequence, isMine);
    this.room.event(event);
    if (event.kind === 'message' && !isMine && !isLooking() && window.Notification?.permission === 'granted') {
      import('./notices.js').then(({ showNotice }) => showNotice(event.room, this.names.of(by), event.message.text,
        () => event.room !== this.room.id && this.open(event.room)));
    }
    if (event.kind === 'read' && isMine && event.room !== this.room.id && event.state === 'read') {
      this.api.room(event.room).then((room) => this.rooms.put(room), () => {});
    }
  }

  #showTitle() {
    showTitle(this.rooms.get(this.room.id)?.title ?? this.room.id, this.rooms.unread);
  }

  #connected() {
    clearTimeout(this.#offlineTimer);
    this.#offlineTimer = undefined;
    $('.offline').hidden = true;
    this.room.outbox?.hurry();
  }

  #disconnected() {
    // Counted from the first loss: failed attempts to come back do not put it off.
    this.#offlineTimer ??= setTimeout(() => $('.offline').hidden = this.live.isOpen, 2000);
  }

  #buttons() {
    $('.back').addEventListener('click', () => {
      $('#app').classList.remove('in-room');
      $('.room[aria-current]')?.focus();
    });
    $('.bell').hidden = window.Notification?.permission !== 'default';
    $('.bell').addEventListener('click', async () => (await import('./notices.js')).allowNotices($('.bell')));
    $('.sign-out').addEventListener('click', () => {
      this.stop();
      sessionStorage.removeItem('ferry.token');
      location.replace(location.pathname);
    });
    $('.find').addEventListener('click', async () => {
      const [{ Search }] = await Promise.all([import('./search.js'), extraStyles()]);
      this.search ??= new Search($('.room-body'), this.api, this.names, {
        jump: (id) => this.room.jumpTo(id),
        close: () => {
          if (this.room.timeline.hasNewer) this.room.toLatest();
          $('.find').focus();
        },
      });
      this.search.open(this.room.id);
    });
    // Safari lays the keyboard over the page instead of making it smaller.
    const view = window.visualViewport;
    view?.addEventListener('resize', () =>
      document.documentElement.style.setProperty('--height', `${Math.min(view.height, innerHeight)}px`));
  }

  /** Today becomes yesterday. */
  #midnight() {
    const now = new Date();
    const next = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1, 0, 0, 1);
    // Clocks are set and computers sleep: it is looked at every minute at the latest.
    setTimeout(() => {
      if (new Date().getDate() !== now.getDate()) this.room.log.updateAll();
      this.#midnight();
    }, Math.min(next - now, 60_000));
  }
}
