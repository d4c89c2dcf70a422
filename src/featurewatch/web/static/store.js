// State of the page, and how events change it. Views read it; `changed` asks for a redraw.
import { Refusal, get } from './data.js';
import { compare } from './fleet.js';
import { OF_ROWS, apply } from './events.js';
import { isOfFleet, resourcesOf } from './resources.js';
import { Stream } from './stream.js';

const MARK_MS = 3000;
const QUIET_MS = 10000;
const FOLLOW_MS = 150;
const FLEET_MS = 2000;
const PICTURE_MS = 5000;
const ROWS_MS = 1500;
const RETRY_MS = 2000;
const UNREAD_MS = 10000;
const PAGE = 100;

const numberOf = (position) => (position || '').split('.');

// Whether a document of an event is newer than one that was fetched meanwhile.
function isNewer(old, fetched) {
  const [[boot, number], [otherBoot, otherNumber]] = [numberOf(old && old.position), numberOf(fetched.position)];
  return boot === otherBoot && Number(number) > Number(otherNumber);
}

export function routeOf(search) {
  const given = Object.fromEntries(new URLSearchParams(search));
  return { ...given, view: given.view || (given.cluster ? 'cluster' : 'fleet') };
}

export class Store {
  constructor(changed) {
    this.draw = changed;
    this.route = routeOf(location.search);
    this.fleet = null;
    this.levels = { releases: [], names: {} };
    this.live = 'lost';
    this.isPaused = false;
    this.error = '';
    this.isLoggedOut = false;
    this.offset = 0;
    this.announced = 0;
    this.status = '';
    this.alarm = '';
    this.opened = new Set();
    this.sort = this.sort.bind(this);
    this.more = this.more.bind(this);
    this.stream = new Stream((kind, data) => this.onEvent(kind, data), (state) => this.onLive(state));
    this.clear();
  }

  clear() {
    this.rows = new Map();
    this.order = [];
    this.items = [];
    this.total = 0;
    this.cursor = null;
    this.moved = 0;
    this.loaded = false;
    this.changed = new Set();
    this.documents = {};
    this.refusals = {};
    this.missing = new Set();
  }

  now() {
    return Date.now() + this.offset;
  }

  async start() {
    await this.load();
    if (!this.isPaused && !document.hidden && !this.isLoggedOut) this.stream.open(this.position);
  }

  async go(search) {
    const route = routeOf(search);
    const isSame = route.view === this.route.view && route.cluster === this.route.cluster;
    this.route = route;
    if (!isSame) this.clear();
    delete this.documents.differences;
    delete this.documents.rehearsal;
    this.draw();
    await this.load();
  }

  // Everything that the view shows, as it is now; events that come later are applied to it.
  async load() {
    try {
      const fleet = await get('fleet');
      this.setFleet(fleet);
      this.position = fleet.position;
      if (!this.levels.releases.length) this.levels = await get('levels');
      await this.loadView();
      this.error = '';
      this.isLoggedOut = false;
    } catch (error) {
      this.onError(error);
    }
    this.draw();
  }

  onError(error) {
    const isRefusal = error instanceof Refusal;
    this.isLoggedOut = isRefusal && error.status === 401;
    if (this.isLoggedOut) {
      this.error = 'the login has ended';
      this.stream.close();
      this.live = this.isPaused ? 'paused' : 'lost';
    } else {
      this.error = isRefusal ? error.message : 'the server does not answer';
      this.reload(RETRY_MS);
    }
  }

  // A document that is refused is shown as unknown, with the reason; the others are shown.
  // `names`: only these, beside what is there.
  async loadView(names) {
    const { route } = this;
    const wanted = Object.entries(resourcesOf(route)).filter(([name]) => !names || names.has(name));
    const results = await Promise.allSettled(wanted.map(([, [path, parameters]]) => get(path, parameters)));
    if (route !== this.route) return;
    const [documents, refusals] = names ? [{ ...this.documents }, { ...this.refusals }] : [{}, {}];
    results.forEach(({ value, reason }, index) => {
      const [name] = wanted[index];
      if (reason && !(reason instanceof Refusal)) throw reason;
      delete refusals[name];
      if (reason) { delete documents[name]; refusals[name] = reason; } else if (!names || !isNewer(this.documents[name], value)) documents[name] = value;
      else documents[name] = this.documents[name];
    });
    this.announceNext(this.documents.upgrade, documents.upgrade);
    this.announceRoll(this.documents.cluster, documents.cluster);
    [this.documents, this.refusals, this.loaded] = [documents, refusals, true];
    const refusal = Object.values(refusals).find(({ status }) => status === 401) || (route.view === 'fleet' && refusals.list);
    if (refusal) throw refusal;
    if (Object.values(refusals).some(({ status }) => status === 503)) this.reload(route.view === 'releases' ? RETRY_MS : UNREAD_MS);
    if (!names || names.has('list')) this.show(documents.list);
    if (route.view === 'fleet') {
      this.rows = new Map(this.items.map((row) => [row.cluster, row]));
      this.order = this.items.map((row) => row.cluster);
      this.moved = 0;
    }
  }

  show(list) {
    this.items = list ? list.items : [];
    this.total = list ? list.total : 0;
    this.cursor = list ? list.next_cursor : null;
  }

  // A document that came with an event.
  put(name, document) {
    if (name === 'cluster') this.announceRoll(this.documents.cluster, document);
    this.documents = { ...this.documents, [name]: document };
    if (name === 'list') this.show(document);
  }

  // For readers of a screen: a summary, not each change.
  announce(text) {
    if (Date.now() - this.announced < QUIET_MS) return;
    [this.announced, this.status] = [Date.now(), text];
  }

  announceNext(before, after) {
    if (!before || !after || (before.current === after.current && before.next_node === after.next_node)) return;
    const step = after.steps.find(({ id }) => id === after.current);
    this.announce(step ? `next: ${after.next_node === null ? step.title : `node ${after.next_node}`}` : 'the upgrade is complete');
  }

  announceRoll(before, after) {
    const isNews = before && after && (before.nodes_on_newest !== after.nodes_on_newest || before.state !== after.state);
    if (isNews) this.announce(`${after.nodes_on_newest} of ${after.nodes} nodes on ${after.newest_release}, ${after.state}`);
  }

  reload(wait) {
    clearTimeout(this.again);
    this.again = setTimeout(() => this.load(), wait);
  }

  async more() {
    const { route } = this;
    const [path, parameters] = resourcesOf(route).list;
    const page = await get(path, { ...parameters, cursor: this.cursor }).catch(() => null);
    if (!page || route !== this.route) return;
    this.cursor = page.next_cursor;
    this.items = [...this.items, ...page.items];
    for (const row of route.view === 'fleet' ? page.items : []) {
      if (!this.rows.has(row.cluster)) this.order.push(row.cluster);
      this.rows.set(row.cluster, row);
    }
    this.draw();
  }

  setFleet(fleet) {
    const before = this.fleet;
    this.fleet = fleet;
    this.offset = fleet.now_ms - Date.now();
    const grown = before && fleet.alerts.critical - before.alerts.critical;
    if (grown > 0) this.alarm = `${grown} new critical ${grown === 1 ? 'alert' : 'alerts'}`;
    if (before && before.health.critical !== fleet.health.critical) {
      this.announce(`${fleet.health.critical} clusters critical, ${fleet.unknown} unknown`);
    }
  }

  onEvent(kind, data) {
    if (kind === 'reset') this.load();
    else if (kind === 'fleet' || kind === 'snapshot') this.setFleet(data);
    else if (kind === 'state') this.onState(data);
    const missing = apply(kind, data, this);
    if (missing.length) this.follow(missing, isOfFleet(this.route) ? FLEET_MS : missing.includes('picture') ? PICTURE_MS : FOLLOW_MS);
    this.draw();
  }

  onState(row) {
    const id = row.removed ? row.id : row.cluster;
    if (this.route.cluster && id === this.route.cluster) this.followRows();
    if (this.route.view !== 'fleet') return;
    if (row.removed) {
      if (this.rows.delete(id)) this.total -= 1;
      return;
    }
    if (!this.rows.has(id)) {
      this.follow(['list']);
      return;
    }
    const before = this.rows.get(id);
    this.rows.set(id, row);
    if (JSON.stringify({ ...before, at_ms: 0 }) !== JSON.stringify({ ...row, at_ms: 0 })) this.mark(id);
    const sorted = this.order.filter((key) => this.rows.has(key))
      .sort((a, b) => compare(this.rows.get(a), this.rows.get(b)));
    this.moved = this.order.filter((key) => this.rows.has(key)).filter((key, place) => sorted[place] !== key).length;
  }

  mark(id) {
    this.changed.add(id);
    setTimeout(() => { this.changed.delete(id); this.draw(); }, MARK_MS);
  }

  // A worker stores its rows up to a second after it published the state that follows from them.
  followRows() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.follow(OF_ROWS[this.route.view] || []), ROWS_MS);
  }

  // Fetches what the view shows once for all events of a moment; rows that are shown stay in place.
  follow(names, wait = FOLLOW_MS) {
    names.forEach((name) => this.missing.add(name));
    if (this.following || !this.missing.size) return;
    this.following = setTimeout(async () => {
      this.following = null;
      const { order, cursor, items, missing } = this;
      this.missing = new Set();
      // Where more than a page is there, rows change by their events only.
      if (items.length > PAGE || (this.route.view === 'fleet' && cursor)) missing.delete('list');
      if (!missing.size) return;
      try {
        await this.loadView(missing);
        if (this.route.view === 'fleet') this.order = [...order.filter((id) => this.rows.has(id)), ...this.order.filter((id) => !order.includes(id))];
      } catch {
        this.reload(RETRY_MS);
      }
      this.draw();
    }, wait);
  }

  sort() {
    this.order = [...this.rows.keys()].sort((a, b) => compare(this.rows.get(a), this.rows.get(b)));
    this.moved = 0;
    this.draw();
  }

  // Details that are drawn only while they are open.
  toggle(name, isOpen) {
    if (isOpen) this.opened.add(name);
    else this.opened.delete(name);
    this.draw();
  }

  onLive(state) {
    // The stream does not say why it ended.
    if (state === 'lost' && this.live === 'live') this.reload(RETRY_MS * Math.random());
    this.live = this.isPaused ? 'paused' : state;
    this.draw();
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    this.live = isPaused ? 'paused' : 'lost';
    if (isPaused) this.stream.close();
    else this.start();
    this.draw();
  }

  onVisible(isVisible) {
    if (!isVisible) this.stream.close();
    else if (!this.isPaused) this.start();
  }
}
