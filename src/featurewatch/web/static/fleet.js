// The list of clusters: worst first, one row a cluster.
import { ClusterLink, More, Progress, Since, Table, Word, html, link } from './parts.js';

const HEALTHS = ['critical', 'unknown', 'warning', 'good'];
const STATES_SHOWN = ['mixed', 'ready', 'partly', 'finalized', 'unknown'];
const STATES = ['mixed', 'unknown', 'ready'];

// The same order as the API's urgency.
export function compare(a, b) {
  const rank = (row) => [
    HEALTHS.indexOf(row.health),
    STATES.includes(row.state) ? STATES.indexOf(row.state) : STATES.length,
    row.since_ms >= 0 ? row.since_ms : row.at_ms,
  ];
  const [left, right] = [rank(a), rank(b)];
  for (let index = 0; index < left.length; index += 1) {
    if (left[index] !== right[index]) return left[index] - right[index];
  }
  return a.cluster < b.cluster ? -1 : 1;
}

export function releases(row) {
  if (!row.releases.length) return html`<span class="dim">no nodes known</span>`;
  return row.releases.map(({ release, nodes }) => `${nodes} × ${release}`).join(', ');
}

export function stateText(row) {
  return row.state === 'mixed' ? 'mixed releases' : {
    ready: 'ready to finalize', partly: 'partly finalized',
  }[row.state] || row.state;
}

function alertText(alerts) {
  const counts = ['critical', 'warning', 'info'].filter((severity) => alerts[severity] > 0);
  return counts.length ? counts.map((severity) => `${alerts[severity]} ${severity}`).join(', ') : html`<span class="dim">none</span>`;
}

function rowOf({ row, now, changed }) {
  const level = row.levels[0];
  const health = row.unknown_reason && row.health !== 'unknown'
    ? html`<${Word} word=${row.health} /> <${Word} word="unknown" />` : html`<${Word} word=${row.health} />`;
  return html`<tr key=${row.cluster} class=${changed ? 'changed' : ''} data-cluster=${row.cluster}>
    <th scope="row"><${ClusterLink} id=${row.cluster} />${row.name ? html` <span>${row.name}</span>` : ''}</th>
    <td title=${row.unknown_reason || ''}>${health}</td>
    <td><${Word} word=${row.state} text=${stateText(row)} />${row.migrating ? ', migrating' : ''}</td>
    <td><${Since} ms=${row.since_ms} now=${now} /></td>
    <td><${Progress} value=${row.nodes_on_newest} total=${row.nodes}
      text=${row.newest_release ? `${row.nodes_on_newest} of ${row.nodes} on ${row.newest_release}` : `${row.nodes} nodes`} /></td>
    <td>${releases(row)}</td>
    <td class="mono">${level ? level.name : html`<span class="dim">nothing finalized</span>`}</td>
    <td class="number" title="nodes that a finalized level excludes">${row.incompatible}</td>
    <td>${alertText(row.alerts)}</td>
    <td><${Since} ms=${row.at_ms} now=${now} suffix=" ago" /></td>
  </tr>`;
}

const COLUMNS = [
  'cluster', 'health', 'upgrade', 'since', 'roll', 'nodes by release', 'metadata.version',
  '#excluded', 'alerts', 'last state',
];

export function Fleet({ store }) {
  const { rows, route, fleet } = store;
  const shown = store.order.map((id) => rows.get(id)).filter(Boolean);
  const filters = ['', ...HEALTHS];
  return html`<section>
    <h1>Clusters</h1>
    <p class="tools">
      ${filters.map((health) => html`<a class="filter" aria-current=${(route.health || '') === health ? 'true' : null}
        href=${link({ view: 'fleet', health, state: route.state, q: route.q })}>${health || 'any health'}${health && fleet ? ` ${fleet.health[health]}` : ''}</a>`)}
    </p>
    <p class="tools">
      ${['', ...STATES_SHOWN].map((state) => html`<a class="filter" aria-current=${(route.state || '') === state ? 'true' : null}
        href=${link({ view: 'fleet', health: route.health, state, q: route.q })}>${state ? stateText({ state }) : 'any state'}${state && fleet ? ` ${fleet.states[state] || 0}` : ''}</a>`)}
      ${store.moved > 0 && html`<button type="button" onClick=${store.sort}>${store.moved} changed place, sort again</button>`}
    </p>
    <${Table} caption=${`${shown.length} of ${store.total} clusters${route.q ? ` with “${route.q}”` : ''}, worst first`}
      columns=${COLUMNS} empty=${store.loaded ? 'No cluster is known: is one watched, and does a worker run?' : 'reading'}>
      ${shown.map((row) => rowOf({ row, now: store.now(), changed: store.changed.has(row.cluster) }))}
    <//>
    <${More} store=${store} />
  </section>`;
}
