// Levels as each node of a cluster reports them: nodes that have not applied them, or disagree.
import { More, Refused, Since, Table, Word, html } from './parts.js';
import { Tabs } from './tabs.js';

function reports(row) {
  const levels = Object.entries(row.levels).map(([feature, name]) => `${feature} ${name}`);
  return [...levels, ...row.differences.filter((text) => !text.startsWith('sees '))].join('; ') || '–';
}

function Summary({ list }) {
  if (!list.total) return null;
  const text = list.differing ? `${list.differing} of ${list.total} nodes differ` : 'no node is known to differ';
  return html`<p class="verdict"><${Word} word=${list.differing ? 'warning' : list.items.every((row) => row.is_current === 'yes') ? 'good' : 'unknown'} text=${text} /> from the levels at offset ${list.epoch}</p>`;
}

export function Nodes({ store }) {
  const { items, documents: { list }, refusals } = store;
  return html`<section>
    <${Tabs} store=${store} />
    ${list ? html`<${Summary} list=${list} />
    <${Table} caption=${`${items.length} of ${store.total} nodes, those that differ first`} columns=${['node', 'runs', 'has the newest levels', 'differs in', '#epoch', 'last response']} empty="no node is known">
      ${items.map((row) => html`<tr key=${`${row.role}-${row.node_id}`}>
        <th scope="row">${row.role} <span class="mono">${row.node_id}</span></th><td>${row.software}</td>
        <td><${Word} word=${row.silent ? 'silent' : row.is_current} /></td>
        <td class="wrap">${reports(row)}</td>
        <td class="number">${row.epoch < 0 ? '–' : row.epoch}</td>
        <td>${row.seen_ms < 0 ? 'none: ApiVersions is not polled' : html`<${Since} ms=${row.seen_ms} now=${store.now()} suffix=" ago" />`}</td></tr>`)}
    <//><${More} store=${store} />` : html`<${Refused} refusal=${refusals.list} />`}
  </section>`;
}
