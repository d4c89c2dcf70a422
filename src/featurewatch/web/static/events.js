// What an event changes in the documents of a view: it carries most of them, and what it does not
// carry is fetched.
const PLACES = ['critical', 'warning', 'info'];

// Resources that an event may change, by the view and the kind of the event.
const CHANGED = {
  cluster: { state: ['cluster'], alert: ['cluster'], change: ['changes'] },
  upgrade: { state: ['cluster'], alert: ['upgrade'] },
  picture: { state: ['cluster', 'picture'], alert: ['picture'], change: ['picture'], revisions: ['picture'] },
  history: { state: ['cluster'], revisions: ['list'], change: ['changes'] },
  operations: { state: ['cluster'], operations: ['list'] },
  nodes: { state: ['cluster'] },
  quorum: { state: ['cluster'] },
  migration: { state: ['cluster'] },
  rehearsal: { state: ['cluster'] },
  alerts: { alert: ['list'] },
  sources: { state: ['list'] },
  releases: { state: ['list'] },
};

// Resources that follow from the rows of the worker, which come after the state.
export const OF_ROWS = { cluster: ['readiness'], upgrade: ['upgrade'], nodes: ['list'], quorum: ['quorum'], rehearsal: ['rehearsal'] };

function isAbout(route, data) {
  return !route.cluster || data.cluster === route.cluster || (data.removed && data.id === route.cluster);
}

// The row without the document, and the document's fields.
function clusterOf({ document, ...row }) {
  return document && { ...row, ...document };
}

function withAlert(cluster, alert) {
  const others = cluster.firing.filter(({ id }) => id !== alert.id);
  if (alert.state !== 'firing') return { ...cluster, firing: others };
  const rank = (item) => PLACES.indexOf(item.severity);
  return { ...cluster, firing: [...others, alert].sort((a, b) => rank(a) - rank(b) || a.since_ms - b.since_ms || (a.id < b.id ? -1 : 1)) };
}

// The list of alerts with one more, or with one that changed its state.
function withAlertRow(list, alert, state) {
  if (!list || list.next_cursor) return null;
  const others = list.items.filter(({ id }) => id !== alert.id);
  const items = (alert.state === state ? [...others, alert] : others)
    .sort((a, b) => PLACES.indexOf(a.severity) - PLACES.indexOf(b.severity) || a.since_ms - b.since_ms || (a.id < b.id ? -1 : 1));
  return { ...list, items, total: list.total + items.length - list.items.length };
}

// New items before those of a list, if none between them may be missing; null: it has to be fetched.
function before(list, items, key, follows) {
  if (!list || !items || !items.length) return null;
  const known = new Map(list.items.map((item) => [key(item), item]));
  const fresh = items.filter((item) => !known.has(key(item)));
  if (list.next_cursor || !follows(items, list.items, fresh)) return null;
  const changed = new Map(items.map((item) => [key(item), item]));
  return { ...list, items: [...fresh, ...list.items.map((item) => changed.get(key(item)) || item)], total: list.total + fresh.length };
}

const isNext = (items, old) => !old.length || items[0].revision <= old[0].revision + 1;
const overlap = (items, old, fresh) => !old.length || fresh.length < items.length;

// The new version of a document; null: the event does not carry it.
function carried(name, kind, data, { documents, route }) {
  const old = documents[name];
  if (!old || data.removed) return null;
  if (name === 'cluster') return kind === 'alert' ? withAlert(old, data) : clusterOf(data);
  if (name === 'changes') return before(old, [data], (item) => `${item.feature} ${item.revision}`, isNext);
  if (name !== 'list') return null;
  if (kind === 'alert') return withAlertRow(old, data, route.state || 'firing');
  if (kind === 'revisions') return before(old, data.items, (item) => item.revision, isNext);
  return kind === 'operations' && !route.kind ? before(old, data.items, (item) => item.id, overlap) : null;
}

// Applies an event to the documents of the view, and names those that have to be fetched.
export function apply(kind, data, store) {
  const { route } = store;
  const names = isAbout(route, data) ? (CHANGED[route.view] || {})[kind] || [] : [];
  return names.filter((name) => {
    const document = carried(name, kind, data, store);
    if (document) store.put(name, { ...document, position: store.stream.position });
    return !document;
  });
}
