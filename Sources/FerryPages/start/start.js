// The services side by side: a chat page of each in a frame.

const words = {
  en: {
    explanation: 'Each service has a chat of its own. A bridge carries what is said in one to the others.',
    other: 'Each service has a chat of its own.',
    open: 'Open alone',
    none: 'No services run here.',
    failed: 'The list of services cannot be read. Is Ferry still running?',
  },
  ja: {
    explanation: 'サービスごとに独立したチャットがあり、ブリッジが互いのメッセージを運びます。',
    other: 'サービスごとに独立したチャットがあります。',
    open: '単独で開く',
    none: 'サービスは動いていません。',
    failed: 'サービスの一覧を読み込めません。Ferry は動いていますか？',
  },
};
const lang = navigator.languages.find((each) => /^(en|ja)\b/.test(each))?.slice(0, 2) ?? 'en';
const titles = { local: 'Local', twilio: 'Twilio', pusher: 'Pusher', backendless: 'Backendless' };
const people = ['ada', 'bob', 'grace', 'kay'];
const main = document.querySelector('main');
const explanation = document.querySelector('.explanation');
document.documentElement.lang = lang;

/** The address of a pane's chat page. Its token leaves the frame's address as soon as it is loaded. */
function address(pane, name) {
  const query = new URLSearchParams({ room: pane.room, name, ...(pane.token && { token: pane.token }) });
  return `${pane.url}/chat?${query}`;
}

function section(pane, index) {
  const name = people[index % people.length];
  const title = titles[pane.title] ?? pane.title;
  const element = document.createElement('section');
  const bar = document.createElement('div');
  const heading = document.createElement('h2');
  const place = document.createElement('p');
  const link = document.createElement('a');
  const frame = document.createElement('iframe');
  bar.className = 'pane-title';
  heading.textContent = title;
  place.textContent = `${name} · ${pane.room}`;
  link.textContent = words[lang].open;
  link.href = address(pane, name);
  link.target = '_blank';
  link.rel = 'noopener';
  frame.title = title;
  frame.src = address(pane, name);
  frame.allow = 'clipboard-write';
  bar.append(heading, place, link);
  element.append(bar, frame);
  return element;
}

try {
  const { panes } = await (await fetch('/start/panes.json')).json();
  main.replaceChildren(...panes.map(section));
  explanation.textContent = words[lang][panes.length === 0 ? 'none' : panes.some((pane) => pane.token) ? 'explanation' : 'other'];
} catch {
  explanation.textContent = words[lang].failed;
}
