// The event stream. The tabs of a browser share one, as a browser opens only six connections to a
// server: the tab that holds a lock reads it, and passes its events on. A hidden tab holds no lock.
import { ROOT } from './data.js';

const NAME = `featurewatch.events ${location.pathname}`;
const KINDS = ['snapshot', 'fleet', 'state', 'alert', 'change', 'revisions', 'operations', 'reset', 'bye'];
const FIRST_MS = 1000;
const MAX_MS = 30000;
const boot = (position) => position.split('.')[0];

export class Stream {
  constructor(onEvent, onState) {
    this.onEvent = onEvent;
    this.onState = onState;
    this.wait = FIRST_MS;
    this.position = '';
    this.end = () => {};
  }

  open(position) {
    this.close();
    this.position = position || this.position;
    // Browsers have no locks where a page comes over HTTP from another machine.
    if (!navigator.locks || !window.BroadcastChannel) this.connect();
    else this.share();
  }

  share() {
    const channel = new BroadcastChannel(NAME);
    const waiting = new AbortController();
    let release = () => {};
    channel.onmessage = ({ data }) => this.onMessage(data);
    this.channel = channel;
    this.end = () => {
      waiting.abort();
      release();
      channel.close();
    };
    navigator.locks.request(NAME, { signal: waiting.signal }, () => new Promise((resolve) => {
      release = resolve;
      if (waiting.signal.aborted) resolve();
      else this.connect();
    })).catch(() => {});
    this.pass({ isQuestion: true });
  }

  // Messages that another tab passes on.
  onMessage(message) {
    if (message.isQuestion) {
      if (this.source) this.pass({ state: this.state, position: this.position });
    } else if (message.state) {
      this.onState(message.state);
      // Events since the documents of this tab were passed on to other tabs only.
      if (message.position && message.position !== this.position) this.onEvent('reset', {});
      this.position = message.position || this.position;
    } else {
      if (boot(message.position) !== boot(this.position)) this.onEvent('reset', {});
      this.position = message.position;
      this.onEvent(message.kind, message.data);
    }
  }

  pass(message) {
    if (this.channel) this.channel.postMessage(message);
  }

  connect() {
    const source = new EventSource(`${ROOT}/events?${new URLSearchParams({ after: this.position })}`);
    this.source = source;
    this.setState('lost');
    source.onopen = () => { this.wait = FIRST_MS; this.setState('live'); };
    source.onerror = () => {
      this.setState('lost');
      // A response other than a stream ends it for good; it reopens broken connections on its own.
      if (source.readyState === EventSource.CLOSED) this.later();
    };
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        if (event.lastEventId) this.position = event.lastEventId;
        const data = JSON.parse(event.data);
        this.pass({ kind, data, position: this.position });
        this.onEvent(kind, data);
      });
    }
  }

  setState(state) {
    this.state = state;
    this.pass({ state });
    this.onState(state);
  }

  later() {
    this.source.close();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.wait * (0.5 + Math.random()));
    this.wait = Math.min(this.wait * 2, MAX_MS);
  }

  close() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
    this.end();
    this.channel = null;
    this.end = () => {};
  }
}
