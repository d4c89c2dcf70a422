// What the page shows, and how events change it. Views read it; `changed` asks for a drawing.
import { Refusal, Stream, get } from './data.js';
import { compare } from './fleet.js';

const MARK_MS = 3000;
const QUIET_MS = 10000;
const FOLLOW_MS = 150;
const ROWS_MS = 1500;

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
    this.offset = 0;
    this.announced = 0;
    this.status = '';
    this.alarm = '';
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
    this.cluster = null;
    this.readiness = null;
    this.readinessError = '';
    this.changes = [];
    this.missing = '';
  }

  now() {
    return Date.now() + this.offset;
  }

  async start() {
    await this.load();
    if (!this.isPaused && !document.hidden) this.stream.open(this.position);
  }

  async go(search) {
    const route = routeOf(search);
    const isSame = route.view === this.route.view && route.cluster === this.route.cluster;
    this.route = route;
    if (!isSame) this.clear();
    this.draw();
    await this.load();
  }

  // Everything that the view shows, as it is now; events that come later are applied to it.
  async load() {
    const { route } = this;
    try {
      const fleet = await get('fleet');
      this.setFleet(fleet);
      this.position = fleet.position;
      if (!this.levels.releases.length) this.levels = await get('levels');
      if (route.view === 'cluster') await this.loadCluster();
      else await this.loadList();
      this.error = '';
    } catch (error) {
      this.error = error instanceof Refusal ? error.message : 'the server does not answer';
      clearTimeout(this.again);
      this.again = setTimeout(() => this.load(), 2000);
    }
    this.draw();
  }

  listParameters() {
    const { route } = this;
    if (route.view === 'alerts') return ['alerts', { state: route.state || 'firing' }];
    if (route.view === 'sources') return ['sources', {}];
    return ['clusters', { order: 'urgency', health: route.health, q: route.q }];
  }

  async loadList() {
    const { route } = this;
    const [path, parameters] = this.listParameters();
    const page = await get(path, parameters);
    if (route !== this.route) return;
    this.loaded = true;
    this.total = page.total;
    this.cursor = page.next_cursor;
    this.items = page.items;
    if (path === 'clusters') {
      this.rows = new Map(page.items.map((row) => [row.cluster, row]));
      this.order = page.items.map((row) => row.cluster);
      this.moved = 0;
    }
  }

  async more() {
    const [path, parameters] = this.listParameters();
    const page = await get(path, { ...parameters, cursor: this.cursor });
    this.cursor = page.next_cursor;
    this.items = [...this.items, ...page.items];
    if (path === 'clusters') {
      for (const row of page.items) {
        if (!this.rows.has(row.cluster)) this.order.push(row.cluster);
        this.rows.set(row.cluster, row);
      }
    }
    this.draw();
  }

  async loadCluster() {
    const { route } = this;
    const path = `clusters/${encodeURIComponent(route.cluster)}`;
    try {
      const [cluster, changes] = await Promise.all([get(path), get(`${path}/changes`)]);
      if (route !== this.route) return;
      this.cluster = cluster;
      this.changes = changes.items;
      this.missing = '';
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 404) throw error;
      this.missing = error.message;
      return;
    }
    try {
      const report = await get(`${path}/readiness`, { target: route.target });
      if (route === this.route) [this.readiness, this.readinessError] = [report, ''];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      [this.readiness, this.readinessError] = [null, error.message];
    }
  }

  setFleet(fleet) {
    const before = this.fleet;
    this.fleet = fleet;
    this.offset = fleet.now_ms - Date.now();
    const grown = before && fleet.alerts.critical - before.alerts.critical;
    if (grown > 0) this.alarm = `${grown} new critical ${grown === 1 ? 'alert' : 'alerts'}`;
    if (before && Date.now() - this.announced > QUIET_MS && before.health.critical !== fleet.health.critical) {
      this.announced = Date.now();
      this.status = `${fleet.health.critical} clusters critical, ${fleet.unknown} unknown`;
    }
  }

  onEvent(kind, data) {
    if (kind === 'reset') this.load();
    else if (kind === 'fleet' || kind === 'snapshot') this.setFleet(data);
    else if (kind === 'state') this.onState(data);
    else if (kind === 'alert' && this.route.view === 'alerts') this.follow();
    else if (kind === 'change' && data.cluster === this.route.cluster) this.follow();
    if (kind === 'state' && this.route.view === 'sources') this.follow();
    this.draw();
  }

  onState(row) {
    const id = row.removed ? row.id : row.cluster;
    if (this.route.view === 'cluster' && id === this.route.cluster) {
      this.follow();
      this.followRows();
    }
    if (this.route.view !== 'fleet') return;
    if (row.removed) {
      if (this.rows.delete(id)) this.total -= 1;
      return;
    }
    if (!this.rows.has(id)) {
      this.follow();
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
    this.later = setTimeout(() => this.follow(), ROWS_MS);
  }

  // Fetches what the view shows once for all events of a moment; rows that are shown stay in place.
  follow() {
    if (this.following) return;
    this.following = setTimeout(async () => {
      this.following = null;
      const { order, cursor } = this;
      if (this.route.view === 'fleet' && order.length && cursor) return;
      try {
        if (this.route.view === 'cluster') await this.loadCluster();
        else await this.loadList();
        if (this.route.view === 'fleet') this.order = [...order.filter((id) => this.rows.has(id)), ...this.order.filter((id) => !order.includes(id))];
      } catch {
        this.again = setTimeout(() => this.load(), 2000);
      }
      this.draw();
    }, FOLLOW_MS);
  }

  sort() {
    this.order = [...this.rows.keys()].sort((a, b) => compare(this.rows.get(a), this.rows.get(b)));
    this.moved = 0;
    this.draw();
  }

  onLive(state) {
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
