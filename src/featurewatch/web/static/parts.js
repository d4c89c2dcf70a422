// The parts that all views are made of: words with shapes, times, ids, tables.
import { h } from './vendor/preact-10.29.8.js';
import htm from './vendor/htm-3.1.1.js';

export const html = htm.bind(h);

// A state is a word and a shape; the colour only repeats it.
const SHAPES = {
  critical: '✕', no: '✕', refused: '✕', stalled: '✕', firing: '✕',
  unknown: '?', silent: '?', 'catching-up': '?', lost: '?',
  warning: '▲', mixed: '▲', partly: '▲', ready: '▲',
  canceled: '▲',
  good: '●', yes: '●', accepted: '●', completed: '●', following: '●', finalized: '●', live: '●', resolved: '●',
  paused: '‖', retired: '–',
};
const COLOURS = {
  '✕': 'bad', '?': 'unknown', '▲': 'warn', '●': 'good', '‖': 'unknown', '–': 'plain',
};

export function Word({ word, text }) {
  const shape = SHAPES[word] || '–';
  return html`<span class="word ${COLOURS[shape]}"><span aria-hidden="true">${shape}</span> ${text || word}</span>`;
}

export function age(ms) {
  if (ms < 0) return 'now';
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min`;
  const hours = Math.floor(min / 60);
  return hours < 48 ? `${hours} h${min % 60 ? ` ${min % 60} min` : ''}` : `${Math.floor(hours / 24)} days`;
}

export function clock(ms) {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

export function Since({ ms, now, suffix }) {
  if (ms < 0) return html`<span title="not known">–</span>`;
  const iso = new Date(ms).toISOString();
  return html`<time datetime=${iso} title=${clock(ms)}>${age(now - ms)}${suffix || ''}</time>`;
}

// Ids with runs drawn together: 1-3, 7.
export function runs(ids) {
  const found = [];
  for (const id of [...ids].sort((a, b) => a - b)) {
    const last = found[found.length - 1];
    if (last && last[1] + 1 >= id) last[1] = id;
    else found.push([id, id]);
  }
  return found.map(([low, high]) => (low === high ? `${low}` : `${low}-${high}`)).join(', ');
}

export function Ids({ ids }) {
  return ids.length ? html`<span class="mono">${runs(ids)}</span>` : html`<span class="dim">none</span>`;
}

// What is seen is what is copied: an address of the page may hold what a terminal obeys.
export function printable(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '');
}

// A word of a shell: an id comes from a cluster, and a command is there to be run.
export function quoted(given) {
  const text = printable(given);
  return /^[\w.-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function levelName(names, feature, level) {
  if (level == null) return '–';
  if (level === 0) return 'off';
  const name = names[feature] && names[feature][level - 1];
  return name ? `${level} (${name})` : `${level}`;
}

// A finalized level; null: not finalized. Only the early draft of KIP-584 finalizes level 0.
export function finalizedName(names, feature, level) {
  return level === 0 ? '0' : levelName(names, feature, level || 0);
}

// A change of a finalized level; its kind distinguishes level 0 from a removal.
export function levelChange(names, { feature, kind, before, after }) {
  const old = finalizedName(names, feature, kind === 'finalized' ? null : before);
  return `${old} → ${finalizedName(names, feature, kind === 'removed' ? null : after)}`;
}

export function Copy({ text, label }) {
  async function copy(event) {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(printable(text));
      button.textContent = 'copied';
    } catch {
      button.textContent = 'select it by hand';
    }
    setTimeout(() => { button.textContent = 'copy'; }, 2000);
  }
  return html`<button type="button" class="small" aria-label=${`copy ${label || text}`} onClick=${copy}>copy</button>`;
}

export function Command({ text }) {
  return html`<p class="command"><code>${text}</code> <${Copy} text=${text} /></p>`;
}

// A bar n of m with its text; the text is what counts.
export function Progress({ value, total, text }) {
  const width = total ? (100 * value) / total : 0;
  return html`<span class="progress">
    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="8" /><rect class="bar" width=${width} height="8" />
    </svg>
    <span>${text}</span>
  </span>`;
}

// Each id with its shape; drawn only while it is open, as there may be thousands.
export function IdGrid({ store, name, nodes }) {
  const isOpen = store.opened.has(name);
  return html`<details open=${isOpen} onToggle=${(event) => store.toggle(name, event.currentTarget.open)}>
    <summary>Each node (${nodes.length})</summary>
    ${isOpen && html`<ul class="grid mono">${nodes.map(({ id, word }) => html`<li key=${id} title=${word}><${Word} word=${word} text=${`${id}`} /><span class="sr"> ${word}</span></li>`)}</ul>`}
  </details>`;
}

export function counted(count, word) {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

// A document that could not be had: why, never an empty table.
export function Refused({ refusal }) {
  return html`<p class="banner"><${Word} word="unknown" />: ${refusal ? refusal.message : 'reading'}</p>`;
}

export function More({ store }) {
  return store.cursor && html`<p><button type="button" onClick=${store.more}>Show more</button> <span class="dim">${store.items.length} of ${store.total}</span></p>`;
}

// Cells name their columns: where a row is drawn as a card, that is the label beside each value. The
// roles are those of a table, which some browsers forget when its parts are not laid out as one.
function labelled(row, columns) {
  if (!row || row.type !== 'tr') return row;
  let place = 0;
  for (const cell of [row.props.children].flat(2)) {
    if (cell && cell.props) {
      cell.props.role = cell.type === 'th' ? 'rowheader' : 'cell';
      cell.props['data-label'] = columns[place];
      place += Number(cell.props.colspan || 1);
    }
  }
  row.props.role = 'row';
  return row;
}

export function Table({ caption, columns, children, empty }) {
  const names = columns.map((column) => column.replace(/^#/, ''));
  const rows = (Array.isArray(children) ? children : [children]).flat().filter(Boolean).map((row) => labelled(row, names));
  return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0">
    <table role="table">
      <caption>${caption}</caption>
      <thead role="rowgroup"><tr role="row">${columns.map((column, place) => html`<th scope="col" role="columnheader" class=${column.startsWith('#') ? 'number' : ''}>${names[place]}</th>`)}</tr></thead>
      <tbody role="rowgroup">${rows.length ? rows : html`<tr role="row"><td role="cell" colspan=${columns.length} class="dim">${empty || 'none'}</td></tr>`}</tbody>
    </table>
  </div>`;
}

export function link(parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
  return `?${query}`;
}

export function ClusterLink({ id }) {
  return html`<a class="mono" href=${link({ view: 'cluster', cluster: id })}>${id}</a>`;
}
