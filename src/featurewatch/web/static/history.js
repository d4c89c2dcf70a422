// The history of one cluster: its revisions, and what differs between two of them.
import { Changes } from './cluster.js';
import { Ids, More, Refused, Since, Table, counted, finalizedName, html, link } from './parts.js';
import { Tabs } from './tabs.js';

function ends(row) {
  const [before, after] = [row.before, row.after];
  if (!before) return ['–', `${after.software} registered`];
  if (!after) return [before.software, 'registration gone'];
  const [from, to] = [before, after].map((end) => `${end.software}${end.fenced ? ', fenced' : ''}`);
  return from === to ? [`${from}, other ranges`, to] : [from, to];
}

function nodeRows(rows) {
  return rows.map((row) => {
    const [before, after] = ends(row);
    return html`<tr><th scope="row">${row.role}${row.nodes.length === 1 ? '' : 's'} <${Ids} ids=${row.nodes} /></th>
      <td class="number">${row.nodes.length}</td><td>${before}</td><td>${after}</td></tr>`;
  });
}

function Unchanged({ found }) {
  const [levels, nodes] = [found.unchanged_levels, found.unchanged_nodes];
  if (!levels.length && !nodes.length) return null;
  return html`<details><summary>Unchanged: ${counted(levels.length, 'level')}, ${counted(nodes.flatMap((row) => row.nodes).length, 'node')}</summary>
    <ul>${levels.map((level) => html`<li class="mono">${level.feature} ${level.after_name}</li>`)}
      ${nodes.map((row) => html`<li>${row.role}${row.nodes.length === 1 ? '' : 's'} <${Ids} ids=${row.nodes} /> ${row.after.software}</li>`)}</ul></details>`;
}

function Differences({ store }) {
  const { documents: { differences: found }, refusals, route } = store;
  if (!route.from || !route.to) return null;
  if (!found) return html`<${Refused} refusal=${refusals.differences} />`;
  return html`<h2>Revision ${found.before.revision} to ${found.after.revision}</h2>
    <${Table} caption=${counted(found.levels.length, 'changed level')} columns=${['feature', 'before', 'after']} empty="no level differs">
      ${found.levels.map((level) => html`<tr key=${level.feature}><th scope="row" class="mono">${level.feature}</th>
        <td class="mono">${level.before_name}</td><td class="mono">${level.after_name}</td></tr>`)}
    <//>
    <${Table} caption=${counted(found.nodes.flatMap((row) => row.nodes).length, 'changed node')} columns=${['nodes', '#count', 'before', 'after']} empty="no node differs">${nodeRows(found.nodes)}<//>
    <${Unchanged} found=${found} />`;
}

function Choice({ name, label, items, value }) {
  return html`<label>${label} <select name=${name}>${items.map((row) => html`<option value=${row.revision} selected=${`${row.revision}` === `${value}`}>${row.revision}</option>`)}</select></label>`;
}

function Compare({ store, open }) {
  const { items, route } = store;
  if (items.length < 2) return null;
  function submit(event) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    open(link({ view: 'history', cluster: route.cluster, from: given.get('from'), to: given.get('to') }));
  }
  return html`<form class="tools" onSubmit=${submit}>
    <${Choice} name="from" label="Compare revision" items=${items} value=${route.from || items[1].revision} />
    <${Choice} name="to" label="with" items=${items} value=${route.to || items[0].revision} />
    <button>Compare</button></form>`;
}

export function History({ store, open }) {
  const { items, documents: { list, changes }, refusals, levels } = store;
  const now = store.now();
  return html`<section>
    <${Tabs} store=${store} />
    <${Compare} store=${store} open=${open} />
    <${Differences} store=${store} />
    <h2>Revisions</h2>
    ${list ? html`<${Table} caption=${`${items.length} of ${store.total} revisions, newest first`} columns=${['revision', 'when', 'metadata.version', 'other levels', '#nodes', '#excluded', '#epoch', 'authority', 'differences']} empty="no revision is known: no level has changed since the beginning of the topic epochs">
      ${items.map((row, index) => {
        const { 'metadata.version': level, ...others } = row.finalized;
        const earlier = items[index + 1];
        return html`<tr key=${row.revision}><th scope="row" class="mono">${row.revision}</th>
          <td><${Since} ms=${row.at_ms} now=${now} suffix=" ago" /></td>
          <td class="mono">${finalizedName(levels.names, 'metadata.version', level)}</td>
          <td class="mono">${Object.entries(others).map(([name, value]) => `${name} ${value}`).join(', ') || '–'}</td>
          <td class="number">${row.nodes}</td><td class="number">${row.incompatible}</td><td class="number">${row.epoch}</td>
          <td>${row.authority}</td>
          <td>${earlier ? html`<a href=${link({ view: 'history', cluster: store.route.cluster, from: earlier.revision, to: row.revision })}>from ${earlier.revision}</a>` : '–'}</td></tr>`;
      })}
    <//><${More} store=${store} />` : html`<${Refused} refusal=${refusals.list} />`}
    <h2>Changes</h2>
    ${changes ? html`<${Changes} changes=${changes.items} names=${levels.names} now=${now} />` : html`<${Refused} refusal=${refusals.changes} />`}
  </section>`;
}
