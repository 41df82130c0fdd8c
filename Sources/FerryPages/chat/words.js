// Every text that people read, in English, and which language it is. A function where a number or a name goes in.

const en = {
  signIn: 'Sign in',
  signInTo: (host) => `Sign in to ${host}`,
  name: 'Your name',
  token: 'Token',
  tokenFrom: 'From whoever runs this server',
  room: 'Room',
  wrongToken: 'This token is not known here.',
  signOut: 'Sign out',
  rooms: 'Rooms',
  newRoom: 'New room',
  newRoomName: 'Name of the room',
  create: 'Create or join',
  noRooms: 'No rooms yet. Make the first one.',
  back: 'Back to the rooms',
  loading: 'Loading messages…',
  loadFailed: 'The messages could not be loaded.',
  retry: 'Retry',
  empty: 'Nothing here yet. Say hello!',
  messages: (room) => `Messages in ${room}`,
  members: (n) => (n === 1 ? '1 member' : `${n} members`),
  typing: (names) =>
    names.length === 1 ? `${names[0]} is typing…` : names.length === 2
      ? `${names[0]} and ${names[1]} are typing…` : `${names.length} people are typing…`,
  offline: 'No connection. What you write is sent when it is back.',
  unread: 'Unread messages',
  newMessages: (n) => (n === 1 ? '1 new message' : `${n} new messages`),
  toLatest: 'Go to the latest',
  today: 'Today',
  yesterday: 'Yesterday',
  joined: (name) => `${name} joined`,
  left: (name) => `${name} left`,
  read: 'Read',
  readBy: (n) => `Read ${n}`,
  delivered: 'Delivered',
  sending: 'Sending…',
  notSent: 'Not sent',
  waiting: 'Not sent yet. Trying again…',
  edited: 'edited',
  deleted: 'Message deleted',
  you: 'You',
  menu: 'Message menu',
  edit: 'Edit',
  remove: 'Delete',
  removeAsk: 'Delete this message for everybody?',
  copy: 'Copy text',
  copied: 'Copied',
  react: 'React',
  reactWith: (emoji) => `React with ${emoji}`,
  reactions: (emoji, n) => `${emoji}, ${n}`,
  reply: 'Reply',
  replyTo: (name) => `Reply to ${name}`,
  savePicture: 'Save picture',
  saveFile: (name) => `Save ${name}`,
  openLink: (link) => `Open ${link}`,
  enlarge: 'Enlarge picture',
  cancel: 'Cancel',
  close: 'Close',
  write: 'Write a message',
  send: 'Send',
  save: 'Save',
  editing: 'Editing your message',
  editedElsewhere: 'This message was changed elsewhere meanwhile. Save yours over it?',
  useTheirs: 'Use the other text',
  editedDeleted: 'The message was deleted meanwhile. Your text stays here as a draft.',
  attach: 'Attach files',
  detach: (name) => `Remove ${name}`,
  dropHere: 'Drop files to attach them',
  uploading: (percent) => `${percent}%`,
  uploadFailed: 'Not uploaded',
  tooLarge: 'Too large for this server',
  showPicture: 'Show picture',
  pictureFailed: 'The picture could not be loaded.',
  more: 'Show all',
  less: 'Show less',
  people: 'Members',
  suggestions: (n) => (n === 1 ? '1 name' : `${n} names`),
  search: 'Search in this room',
  searchClose: 'Close the search',
  nothingFound: 'Nothing found.',
  results: (n) => (n === 1 ? '1 message' : `${n} messages`),
  notify: 'Notify me of new messages',
  failed: 'That did not work. Try again.',
  gone: 'That message is gone.',
};

const asked = new URLSearchParams(location.search).get('lang');
/** Where and when numbers and times are written as the reader's region does. */
export const locale = [asked, ...navigator.languages].find((each) => /^(en|ja)\b/.test(each ?? '')) ?? 'en';
export const lang = locale.slice(0, 2);

const words = lang === 'ja' ? (await import('./words-ja.js')).ja : en;

/** The text under `key`, with what goes into it. */
export function t(key, ...values) {
  const text = words[key];
  return typeof text === 'function' ? text(...values) : text;
}

/** Sets the texts of the page's own markup: `data-t` for the content, `data-t-label` and the like for attributes. */
export function translate(root) {
  document.documentElement.lang = lang;
  for (const element of root.querySelectorAll('[data-t]')) element.textContent = t(element.dataset.t);
  for (const element of root.querySelectorAll('[data-t-label]')) {
    element.setAttribute('aria-label', t(element.dataset.tLabel));
    if (element.tagName === 'BUTTON') element.title = t(element.dataset.tLabel);
  }
  for (const element of root.querySelectorAll('[data-t-hint]')) element.placeholder = t(element.dataset.tHint);
}
