// The picture of a roll: time from left to right, one band a node, levels, alerts, and the way back.
import { Refused, Table, Word, age, clock, html } from './parts.js';
import { layout, pieces, stamp, unknowns } from './picture_layout.js';
import { Tabs } from './tabs.js';

const MIN_MS = 10e3;
const MAX_PIECES = 8;
const KEYS = 'Arrow keys go to another node, and to its previous or next change; + and - zoom, 0 shows all.';
const TEXTS = { running: 'running', registered: 'registered; whether it is fenced is not known', fenced: 'fenced', silent: 'silent', away: 'away (not registered)' };
let made = { key: [], drawing: null };
let drag = null;

// The stretch of time that is shown, and the place of the cursor.
function viewOf(store, picture) {
  if (!store.zoom || store.zoom.cluster !== picture.cluster) store.zoom = { cluster: picture.cluster, from: null, to: null, row: 0, at: null };
  const { zoom } = store;
  const to = zoom.to === null ? picture.end_ms : Math.min(zoom.to, picture.end_ms);
  return { zoom, from: zoom.from === null ? picture.begin_ms : Math.max(zoom.from, picture.begin_ms), to };
}

function drawn(picture, from, to, width) {
  const key = [picture, from, to, width];
  if (key.some((part, place) => part !== made.key[place])) made = { key, drawing: layout(picture, from, to, width) };
  return made.drawing;
}

function show(store, picture, from, to) {
  const length = Math.max(MIN_MS, Math.min(to - from, picture.end_ms - picture.begin_ms));
  const start = Math.max(picture.begin_ms, Math.min(from, picture.end_ms - length));
  const isAll = start <= picture.begin_ms && start + length >= picture.end_ms;
  Object.assign(store.zoom, isAll ? { from: null, to: null } : { from: start, to: start + length >= picture.end_ms ? null : start + length });
  store.draw();
}

function zoomBy(store, picture, factor) {
  const { zoom, from, to } = viewOf(store, picture);
  const middle = zoom.at !== null && zoom.at >= from && zoom.at <= to ? zoom.at : (from + to) / 2;
  show(store, picture, middle - (middle - from) * factor, middle + (to - middle) * factor);
}

function pan(store, picture, part) {
  const { from, to } = viewOf(store, picture);
  const length = to - from;
  const start = Math.max(picture.begin_ms, Math.min(from + part * length, picture.end_ms - length));
  show(store, picture, start, start + length);
}

function stateAt(picture, band, at) {
  const offset = at - picture.begin_ms;
  const period = picture.known.find(([start, end]) => start <= offset && offset <= end);
  const span = period && band.spans.filter(([start, end]) => start <= offset && offset <= end).pop();
  return span && { begin: Math.max(span[0], period[0]) + picture.begin_ms, end: Math.min(span[1], period[1]) + picture.begin_ms, condition: picture.conditions[span[2]], software: picture.software[span[3]] || '' };
}

function told(picture, zoom) {
  const band = picture.bands[zoom.row];
  if (!band || zoom.at === null) return '';
  const node = `${band.role} ${band.node_id}`;
  const state = stateAt(picture, band, zoom.at);
  if (!state) return `${node}, ${clock(zoom.at)}: unknown`;
  const words = [state.software, TEXTS[state.condition]].filter(Boolean).join(', ');
  return `${node}, ${clock(zoom.at)}: ${words}, from ${stamp(state.begin)} to ${stamp(state.end)} UTC`;
}

// The nearest place before or after the cursor at which something of this node changes.
function nextChange(picture, zoom, direction) {
  const edges = new Set([0, picture.end_ms - picture.begin_ms, ...picture.known.flat(), ...picture.bands[zoom.row].spans.flatMap(([start, end]) => [start, end])]);
  const at = zoom.at === null ? picture.end_ms : zoom.at;
  const times = [...edges].map((offset) => offset + picture.begin_ms).sort((a, b) => a - b);
  const found = direction > 0 ? times.find((time) => time > at) : times.filter((time) => time < at).pop();
  return found === undefined ? at : found;
}

function onKey(event, store, picture) {
  const { zoom, from, to } = viewOf(store, picture);
  const last = picture.bands.length - 1;
  const { key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === '+' || key === '=') zoomBy(store, picture, 0.5);
  else if (key === '-') zoomBy(store, picture, 2);
  else if (key === '0') show(store, picture, picture.begin_ms, picture.end_ms);
  else if (key === 'ArrowUp') zoom.row = Math.max(zoom.row - 1, 0);
  else if (key === 'ArrowDown') zoom.row = Math.min(zoom.row + 1, last);
  else if (key === 'ArrowLeft' || key === 'ArrowRight') zoom.at = nextChange(picture, zoom, key === 'ArrowRight' ? 1 : -1);
  else return;
  event.preventDefault();
  if (zoom.at === null) zoom.at = picture.end_ms;
  if (key.startsWith('Arrow') && (zoom.at < from || zoom.at > to)) pan(store, picture, (zoom.at - (from + to) / 2) / Math.max(to - from, 1));
  store.status = told(picture, zoom);
  store.draw();
}

function pointerAt(event, drawing, from, to) {
  const box = event.currentTarget.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const part = (Math.min(Math.max(x, drawing.left), drawing.right) - drawing.left) / (drawing.right - drawing.left);
  const row = drawing.rows.find((item) => y >= item.y && y < item.y + drawing.row);
  return { at: Math.round(from + part * (to - from)), row: row ? row.place : -1 };
}

function pointers(store, picture, drawing, from, to) {
  const move = (event) => {
    const { at, row } = pointerAt(event, drawing, from, to);
    if (drag) drag.to = at;
    store.zoom.at = at;
    if (row >= 0) store.zoom.row = row;
    store.draw();
  };
  return {
    onPointerMove: move,
    onPointerDown: (event) => { move(event); if (event.button === 0 && event.pointerType !== 'touch') { drag = { from: store.zoom.at, to: store.zoom.at }; event.currentTarget.setPointerCapture(event.pointerId); } },
    onPointerUp: (event) => {
      move(event);
      const [start, end] = drag ? [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)] : [0, 0];
      drag = null;
      if (end - start > (to - from) / 100) show(store, picture, start, end);
    },
    onPointerCancel: () => { drag = null; },
  };
}

// The share of the newest release's colour in that of a release: the first is the oldest.
function mix(picture, software) {
  const { length } = picture.software;
  return { style: { '--mix': `${length < 2 ? 100 : (100 * software) / (length - 1)}%` } };
}

function Drawing({ store, picture, drawing, from, to }) {
  const { zoom } = viewOf(store, picture);
  const { left, right, top, bottom, row, inner } = drawing;
  const labelOf = ({ role, node_id: id }) => `${left < 100 ? role.slice(0, 4) : role} ${id}`;
  const cursor = zoom.at !== null && zoom.at >= from && zoom.at <= to ? drawing.x(zoom.at) : null;
  const shapes = (d, className, software) => html`<path class=${className} ...${mix(picture, software)} d=${d} />`;
  return html`<svg class="roll" width=${drawing.width} height=${drawing.height} aria-hidden="true" ...${pointers(store, picture, drawing, from, to)}>
    <defs>
      <pattern id="unknown" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" class="ground" /><circle cx="1.5" cy="1.5" r="1" class="dot" /><circle cx="4.5" cy="4.5" r="1" class="dot" /></pattern>
      <pattern id="fenced" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="3.4" height="6" class="stripe" /></pattern>
      <pattern id="silent" width="4" height="4" patternUnits="userSpaceOnUse"><rect width="4" height="2.4" class="stripe quiet" /></pattern>
    </defs>
    ${drawing.ticks.map((tick) => html`<g key=${tick.at}><line class="tick" x1=${tick.x} x2=${tick.x} y1="16" y2=${bottom} /><text class="axis" x=${Math.min(Math.max(tick.x, left), right - 40)} y="12" text-anchor="middle">${tick.text}</text></g>`)}
    ${drawing.rows.filter((item) => item.label).map((item) => html`<text key=${item.place} class=${`node${zoom.at !== null && item.place === zoom.row ? ' chosen' : ''}`} x=${left - 8} y=${item.y + inner / 2 + 4} text-anchor="end">${labelOf(picture.bands[item.place])}</text>`)}
    ${drawing.paths.filter(({ condition }) => condition !== 'away').map(({ look, software, condition, d }) => html`<g key=${look}>${shapes(d, `band ${condition}`, software)}${(condition === 'fenced' || condition === 'silent') && html`<path d=${d} fill=${`url(#${condition})`} />`}</g>`)}
    ${drawing.paths.filter(({ condition }) => condition === 'away').map(({ look, d }) => html`<path key=${look} class="away" d=${d} />`)}
    ${drawing.names.map((name) => html`<text class=${name.isOn ? 'on' : ''} x=${name.x} y=${name.y}>${name.text}</text>`)}
    ${drawing.gaps.map(([start, end]) => html`<g><rect x=${start} y=${top} width=${end - start} height=${bottom - top} fill="url(#unknown)" />${end - start > 70 && html`<text class="gap" x=${(start + end) / 2} y=${(top + bottom) / 2 + 4} text-anchor="middle">unknown</text>`}</g>`)}
    ${drawing.marks.map((mark) => html`<g class=${mark.isEnd ? 'level end' : 'level'}><line x1=${mark.x} x2=${mark.x} y1=${18 + Math.max(mark.row, 0) * 14} y2=${bottom} />${mark.row >= 0 && html`<text x=${mark.start} y=${28 + mark.row * 14}>${mark.text}</text>`}</g>`)}
    ${drawing.alerts.map(({ alert, x0, x1, y, row: at }) => html`<g class=${`alarm ${alert.severity}`}><rect x=${x0} y=${y + 2} width=${x1 - x0} height="2" /><path d=${alert.severity === 'critical' ? `M${x0 - 4} ${y - 1}l8 8m0 -8l-8 8` : `M${x0 - 4} ${y + 7}h8l-4 -8z`} />
      ${at !== null && row >= 8 && html`<circle cx=${x0} cy=${at + inner / 2} r="3.5" />`}</g>`)}
    ${drag && html`<rect class="chosen-time" x=${Math.min(drawing.x(drag.from), drawing.x(drag.to))} y=${top} width=${Math.abs(drawing.x(drag.to) - drawing.x(drag.from))} height=${bottom - top} />`}
    ${cursor !== null && drawing.rows[zoom.row] && html`<g class="cursor"><line x1=${cursor} x2=${cursor} y1="16" y2=${bottom} /><rect x=${left} y=${drawing.rows[zoom.row].y - 1} width=${right - left} height=${Math.max(inner, 2) + 2} /></g>`}
  </svg>`;
}

function Legend({ picture }) {
  const has = new Set(picture.bands.flatMap((band) => band.spans.map(([, , condition]) => picture.conditions[condition])));
  const box = (className, fill, software) => html`<svg class="roll" width="22" height="12" aria-hidden="true"><rect class=${className} width="22" height="12" ...${software === undefined ? {} : mix(picture, software)} fill=${fill} /></svg>`;
  const pattern = (name) => html`<svg class="roll" width="22" height="12" aria-hidden="true"><rect class="band" width="22" height="12" ...${mix(picture, picture.software.length - 1)} /><rect width="22" height="12" fill=${`url(#${name})`} /></svg>`;
  return html`<ul class="legend" aria-label="Legend">
    ${picture.software.map((name, place) => html`<li>${box('band', null, place)} ${/^\d/.test(name) ? `Kafka ${name}` : name}</li>`)}
    ${has.has('fenced') && html`<li>${pattern('fenced')} fenced</li>`}
    ${has.has('silent') && html`<li>${pattern('silent')} silent</li>`}
    ${has.has('registered') && html`<li>${box('band registered', null, picture.software.length - 1)} registered, fencing not known</li>`}
    ${has.has('away') && html`<li><svg class="roll" width="22" height="12" aria-hidden="true"><path class="away" d="M0 6H22" /></svg> away</li>`}
    <li>${box('', 'url(#unknown)')} unknown</li>
    ${picture.alerts.length > 0 && html`<li><${Word} word="critical" text="critical alert" /></li><li><${Word} word="warning" text="warning" /></li>`}
    ${picture.levels.length > 0 && html`<li><svg class="roll level" width="10" height="12" aria-hidden="true"><line x1="5" x2="5" y1="0" y2="12" /></svg> level changed</li>`}
    ${picture.no_return.length > 0 && html`<li><svg class="roll level end" width="10" height="12" aria-hidden="true"><line x1="5" x2="5" y1="0" y2="12" /></svg> no way back</li>`}
  </ul>`;
}

function events(picture, from, to) {
  const isIn = (at) => at >= from && at <= to;
  return [
    ...picture.levels.filter((change) => isIn(change.at_ms)).map((change) => ({ at: change.at_ms, what: 'level', text: `${change.feature} ${change.before_name} → ${change.after_name}${change.observed ? '' : ', found in a snapshot: then or before'}` })),
    ...picture.no_return.filter((item) => isIn(item.at_ms)).map((item) => ({ at: item.at_ms, what: item.known ? 'no way back' : 'a way back is not known', text: item.reason })),
    ...picture.alerts.filter((alert) => alert.begin_ms <= to && (alert.end_ms === null || alert.end_ms >= from)).map((alert) => ({ at: alert.begin_ms, what: `${alert.severity} alert, ${alert.end_ms === null ? 'fires' : `resolved after ${age(alert.end_ms - alert.begin_ms)}`}`, text: alert.summary })),
  ].sort((a, b) => a.at - b.at);
}

function spanText({ begin, end, condition, software }) {
  const state = condition === 'away' ? 'away' : `${software}${condition === 'running' ? '' : `, ${condition}`}`;
  return begin === end ? `${state} at ${stamp(begin)}` : `${state} from ${stamp(begin)} to ${stamp(end)}`;
}

function Tables({ store, picture, from, to }) {
  const isOpen = store.opened.has('picture');
  const summary = html`<summary>The picture as tables</summary>`;
  if (!isOpen) return html`<details onToggle=${(event) => store.toggle('picture', event.currentTarget.open)}>${summary}</details>`;
  const gaps = unknowns(picture, from, to).map(({ begin, end }) => `${stamp(begin)} to ${stamp(end)}`);
  return html`<details open onToggle=${(event) => store.toggle('picture', event.currentTarget.open)}>${summary}
    <p>${gaps.length ? `Nothing is known of any node ${gaps.length > MAX_PIECES ? `at ${gaps.length} times, of which the newest are ` : 'in '}${gaps.slice(-MAX_PIECES).join(', ')} UTC.` : 'The nodes are known all the time that is shown.'}</p>
    <${Table} caption="Levels, alerts, and points from which there is no way back, oldest first" columns=${['when', 'what', 'about']} empty="none in this time">
      ${events(picture, from, to).map((item) => html`<tr><th scope="row">${stamp(item.at)} UTC</th><td>${item.what}</td><td class="wrap">${item.text}</td></tr>`)}
    <//>
    <${Table} caption="Nodes, and what they ran; times are UTC, newest first" columns=${['node', '#stretches', 'what was seen']} empty="no node is known">
      ${picture.bands.map((band) => {
        const found = pieces(picture, band, from, to).reverse();
        return html`<tr key=${`${band.role} ${band.node_id}`}><th scope="row">${band.role} <span class="mono">${band.node_id}</span></th><td class="number">${found.length}</td>
          <td class="wrap">${found.length ? html`<ul class="plain">${found.slice(0, MAX_PIECES).map((piece) => html`<li>${spanText(piece)}</li>`)}${found.length > MAX_PIECES && html`<li>and ${found.length - MAX_PIECES} before</li>`}</ul>` : 'unknown'}</td></tr>`;
      })}
    <//></details>`;
}

function Next({ picture }) {
  const next = picture.next_level;
  if (!next) return null;
  const word = next.lossless === null ? 'unknown' : next.lossless ? 'good' : 'warning';
  return html`<p><${Word} word=${word} text=${next.lossless ? 'a way back stays' : next.lossless === null ? 'whether a way back stays is not known' : 'the point of no return is ahead'} />, if the levels of ${next.software} are finalized: ${next.reason}</p>`;
}

export function Picture({ store }) {
  const { documents: { picture }, refusals } = store;
  if (!picture) return html`<section><${Tabs} store=${store} /><${Refused} refusal=${refusals.picture} /></section>`;
  const { zoom, from, to } = viewOf(store, picture);
  const width = Math.max(document.documentElement.clientWidth - 32, 280);
  const drawing = drawn(picture, from, to, width);
  const label = `Roll of ${picture.cluster} from ${clock(from)} to ${clock(to)}: ${picture.bands.length} nodes, ${picture.software.join(', ')}. ${KEYS} The tables after it have the same.`;
  const button = (text, name, act) => html`<button type="button" aria-label=${name} onClick=${act}>${text}</button>`;
  return html`<section>
    <${Tabs} store=${store} />
    <h2>Picture of the roll</h2>
    <${Next} picture=${picture} />
    ${picture.notes.map((note) => html`<p class="dim">${note}</p>`)}
    <p class="tools">${button('+', 'zoom in', () => zoomBy(store, picture, 0.5))}${button('−', 'zoom out', () => zoomBy(store, picture, 2))}
      ${button('◂', 'earlier', () => pan(store, picture, -0.5))}${button('▸', 'later', () => pan(store, picture, 0.5))}
      ${button('all', 'all of the time', () => show(store, picture, picture.begin_ms, picture.end_ms))}
      <span class="dim">${stamp(from)} to ${stamp(to)} UTC</span></p>
    ${picture.bands.length ? html`<div class="picture" role="group" tabindex="0" aria-label=${label} onKeyDown=${(event) => onKey(event, store, picture)}>
      <${Drawing} store=${store} picture=${picture} drawing=${drawing} from=${from} to=${to} /></div>` : html`<p class="dim">No node is known.</p>`}
    <p class="mono told">${told(picture, zoom) || html`<span class="dim">Point at a band, or use the arrow keys. Drag, or + and -, to zoom.</span>`}</p>
    <${Legend} picture=${picture} />
    <${Tables} store=${store} picture=${picture} from=${from} to=${to} />
  </section>`;
}
