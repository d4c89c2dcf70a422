// The page: its header, the view that the address names, and the keyboard.
import { render } from './vendor/preact-10.29.8.js';
import { Cluster } from './cluster.js';
import { urlOf } from './data.js';
import { Fleet } from './fleet.js';
import { History } from './history.js';
import { Alerts, Sources } from './lists.js';
import { Migration } from './migration.js';
import { Nodes } from './nodes.js';
import { Operations } from './operations.js';
import { Since, Word, clock, html, link } from './parts.js';
import { Picture } from './picture.js';
import { Quorum } from './quorum.js';
import { Rehearsal } from './rehearsal.js';
import { Releases } from './releases.js';
import { resourcesOf } from './resources.js';
import { Store } from './store.js';
import { Upgrade } from './upgrade.js';

const VIEWS = {
  fleet: Fleet, releases: Releases, alerts: Alerts, sources: Sources,
  cluster: Cluster, upgrade: Upgrade, picture: Picture, history: History, operations: Operations, nodes: Nodes, quorum: Quorum, migration: Migration, rehearsal: Rehearsal,
};
const HELP = [['/', 'find a cluster'], ['j k', 'next and previous row'], ['Enter', 'open the row'], ['Esc', 'leave'], ['p', 'pause'], ['?', 'this list']];
const SINGLE_KEYS = 'featurewatch.single-keys';

const hasSession = 'session' in document.getElementById('app').dataset;

let isDrawing = false;
let hasHelp = false;

// At most once a frame, however many events come.
function draw() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    render(html`<${Page} store=${store} />`, document.getElementById('app'));
  });
}

const store = new Store(draw);

function Counts({ fleet }) {
  if (!fleet) return null;
  return html`<ul class="counts" aria-label="Clusters by health">
    ${['critical', 'unknown', 'warning', 'good'].map((health) => {
      const count = health === 'unknown' ? fleet.unknown : fleet.health[health];
      return html`<li><a href=${link({ view: 'fleet', health })}><${Word} word=${count || health === 'good' ? health : 'none'} text=${`${count} ${health}`} /></a></li>`;
    })}
  </ul>`;
}

function Freshness() {
  const { fleet } = store;
  const problem = store.error || (fleet && fleet.error);
  return html`<p class="fresh">
    <${Word} word=${problem && store.live === 'live' ? 'lost' : store.live} text=${problem ? 'not current' : store.live} />
    ${fleet && fleet.newest_at_ms >= 0 ? html`<span>, newest state <${Since} ms=${fleet.newest_at_ms} now=${store.now()} suffix=" ago" /></span>` : html`<span>, nothing read yet</span>`}
    <time class="dim mono" datetime=${new Date(store.now()).toISOString()} title=${clock(store.now())}> ${clock(store.now()).slice(11)}</time>
    <button type="button" class="small" aria-pressed=${store.isPaused} onClick=${() => store.pause(!store.isPaused)}>${store.isPaused ? 'resume' : 'pause'}</button>
  </p>`;
}

function find(event) {
  event.preventDefault();
  const text = new FormData(event.currentTarget).get('q');
  open(link({ view: 'fleet', q: text }));
}

function Header() {
  const items = [['fleet', 'Clusters'], ['releases', 'Releases'], ['alerts', 'Alerts'], ['sources', 'Sources']];
  return html`<header>
    <a class="skip" href="#main">Skip to the content</a>
    <div class="line">
      <a class="brand" href="?">featurewatch</a>
      <nav aria-label="Views">${items.map(([view, name]) => html`<a href=${link({ view })} aria-current=${store.route.view === view ? 'page' : null}>${name}</a>`)}</nav>
      <form role="search" onSubmit=${find}><input type="search" name="q" aria-label="Find a cluster by its id" placeholder="find a cluster  /" defaultValue=${store.route.q || ''} /></form>
      <${Counts} fleet=${store.fleet} />
      <${Freshness} />
    </div>
    ${(store.error || (store.fleet && store.fleet.error)) && html`<p class="banner"><${Word} word="unknown" text="the data shown may be out of date" />: ${store.error || store.fleet.error}${store.isLoggedOut && html` <button type="button" class="small" onClick=${() => location.reload()}>log in again</button>`}</p>`}
  </header>`;
}

function Help() {
  if (!hasHelp) return null;
  return html`<aside aria-label="Keys"><h2>Keys</h2><dl class="facts">${HELP.map(([key, text]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${text}</dd></div>`)}</dl>
    <label><input type="checkbox" checked=${localStorage.getItem(SINGLE_KEYS) !== 'off'} onChange=${(event) => localStorage.setItem(SINGLE_KEYS, event.currentTarget.checked ? 'on' : 'off')} /> single keys</label></aside>`;
}

async function logOut() {
  await fetch('logout', { method: 'POST' });
  location.reload();
}

function Footer() {
  const documents = Object.values(resourcesOf(store.route));
  const nameOf = (path) => (/^clusters\/[^/]*$/.test(path) ? 'cluster' : path.split('/').pop());
  return html`<footer class="tools">
    <button type="button" class="small" aria-expanded=${hasHelp} onClick=${() => { hasHelp = !hasHelp; draw(); }}>Keys</button>
    <span class="dim">This view as JSON:</span>
    ${documents.map(([path, parameters]) => html`<a class="filter" href=${urlOf(path, parameters)}>${nameOf(path)}</a>`)}
    <a class="filter" href="api/v1/openapi.json">the whole API</a>
    ${hasSession && html`<button type="button" class="small" onClick=${logOut}>Log out</button>`}
  </footer>`;
}

const TITLES = { fleet: 'Clusters', releases: 'Releases', alerts: 'Alerts', sources: 'Sources' };

function Page() {
  const { view, cluster } = store.route;
  document.title = `${cluster ? `${cluster} ${view === 'cluster' ? 'roll' : view}` : TITLES[view] || TITLES.fleet} – featurewatch`;
  const View = Object.hasOwn(VIEWS, store.route.view) ? VIEWS[store.route.view] : Fleet;
  return html`<${Header} />
    <main id="main" tabindex="-1"><${View} store=${store} open=${open} /><${Help} /></main>
    <${Footer} />
    <p class="sr" role="status">${store.status}</p><p class="sr" role="alert">${store.alarm}</p>`;
}

function open(search) {
  history.pushState(null, '', search);
  scrollTo(0, 0);
  store.go(location.search);
}

document.addEventListener('click', (event) => {
  const anchor = event.target.closest && event.target.closest('a[href]');
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!anchor || !isPlain || !anchor.getAttribute('href').startsWith('?')) return;
  event.preventDefault();
  open(anchor.getAttribute('href'));
});

function step(direction) {
  const links = [...document.querySelectorAll('tbody tr a')];
  const index = links.indexOf(document.activeElement);
  const next = links[index < 0 ? (direction > 0 ? 0 : links.length - 1) : index + direction];
  if (next) next.focus();
}

document.addEventListener('keydown', (event) => {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === 'Escape') {
    hasHelp = false;
    document.activeElement.blur();
    draw();
    return;
  }
  const isOff = localStorage.getItem(SINGLE_KEYS) === 'off';
  if (isTyping || isOff || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === '/') {
    event.preventDefault();
    document.querySelector('input[type=search]').focus();
  } else if (event.key === 'j') step(1);
  else if (event.key === 'k') step(-1);
  else if (event.key === 'p') store.pause(!store.isPaused);
  else if (event.key === '?') { hasHelp = !hasHelp; draw(); }
});

addEventListener('resize', draw);
addEventListener('popstate', () => store.go(location.search));
document.addEventListener('visibilitychange', () => store.onVisible(!document.hidden));
setInterval(draw, 1000);
draw();
store.start();
