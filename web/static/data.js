// Fetches documents, and follows the event stream. No view is known here.

const ROOT = 'api/v1';
const MAX_STORED = 50;
const stored = new Map();

export class Refusal extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// A document; what has not changed is not sent again.
export async function get(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).flatMap(
    ([name, value]) => [value].flat().filter(Boolean).map((item) => [name, item]),
  ));
  const url = `${ROOT}/${path}${[...query].length ? `?${query}` : ''}`;
  const before = stored.get(url);
  const response = await fetch(url, { headers: before ? { 'If-None-Match': before.etag } : {} });
  if (response.status === 304 && before) return before.body;
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, body.detail || response.statusText);
  const etag = response.headers.get('ETag');
  if (etag) {
    stored.delete(url);
    stored.set(url, { etag, body });
    if (stored.size > MAX_STORED) stored.delete(stored.keys().next().value);
  }
  return body;
}

const FIRST_MS = 1000;
const MAX_MS = 30000;

// One stream; it is closed while the tab is hidden, since a browser opens only six to one server.
export class Stream {
  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
    this.source = null;
    this.timer = null;
    this.wait = FIRST_MS;
    this.position = '';
  }

  open(position) {
    this.close();
    this.position = position || this.position;
    const source = new EventSource(`${ROOT}/events?${new URLSearchParams({ after: this.position })}`);
    this.source = source;
    source.onopen = () => { this.wait = FIRST_MS; this.onState('live'); };
    source.onerror = () => {
      this.onState('lost');
      // An answer that is no stream ends it for good; a broken connection it opens again by itself.
      if (source.readyState === EventSource.CLOSED) this.later();
    };
    for (const kind of ['snapshot', 'fleet', 'state', 'alert', 'change', 'revisions', 'operations', 'reset', 'bye']) {
      source.addEventListener(kind, (event) => {
        if (event.lastEventId) this.position = event.lastEventId;
        this.onEvent(kind, JSON.parse(event.data));
      });
    }
  }

  later() {
    this.close();
    this.timer = setTimeout(() => this.open(), this.wait * (0.5 + Math.random()));
    this.wait = Math.min(this.wait * 2, MAX_MS);
  }

  close() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }
}
