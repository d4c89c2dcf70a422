// One cluster: how far its roll is, who is left, and its levels by classes of nodes.
import { Copy, IdGrid, Ids, Refused, Since, Table, Word, html, levelChange, runs } from './parts.js';
import { Tabs } from './tabs.js';
import { Readiness } from './readiness.js';
import { ALERT_COLUMNS, alertRows } from './lists.js';

function Left({ cluster, ghosts }) {
  const left = new Set();
  for (const item of cluster.classes) if (!item.is_newest) item.nodes.filter((id) => !item.ghosts.includes(id)).forEach((id) => left.add(id));
  const fenced = new Set(cluster.classes.flatMap((item) => item.fenced));
  const silent = new Set(cluster.classes.flatMap((item) => item.silent));
  return html`<dl class="facts" id="left">
    <div><dt>left to upgrade</dt><dd><${Ids} ids=${[...left]} />${left.size > 0 && html` <${Copy} text=${runs([...left])} label="the ids of the nodes that are left" />`}</dd></div>
    <div><dt>fenced</dt><dd><${Ids} ids=${[...fenced]} /></dd></div>
    <div><dt>silent</dt><dd><${Ids} ids=${[...silent]} /></dd></div>
    <div><dt>registered without a living node</dt><dd>${ghosts ? html`<${Ids} ids=${[...new Set(ghosts.map((ghost) => ghost.node_id))]} />` : html`<${Word} word="unknown" />`}</dd></div>
  </dl>`;
}

function Classes({ cluster }) {
  const features = [...new Set([
    ...cluster.levels.map((level) => level.feature),
    ...cluster.classes.flatMap((item) => Object.keys(item.ranges)).sort(),
  ])];
  const bad = new Set(cluster.incompatible_nodes.map((node) => `${node.role} ${node.node_id} ${node.feature}`));
  const columns = ['nodes', 'runs', '#count', ...features];
  const finalized = Object.fromEntries(cluster.levels.map((level) => [level.feature, level.name]));
  function cell(item, feature) {
    const range = item.ranges[feature];
    const excluded = item.nodes.some((id) => bad.has(`${item.role} ${id} ${feature}`));
    const text = range ? `${range[0]}-${range[1]}` : item.complete ? 'not supported' : 'unknown';
    return html`<td class=${excluded ? 'mono bad' : 'mono'}>${excluded ? html`<span aria-hidden="true">✕ </span>` : ''}${text}${excluded ? html`<span class="sr"> excluded by the finalized level</span>` : ''}</td>`;
  }
  return html`<${Table} caption="Classes of nodes, and the levels that each supports" columns=${columns}>
    <tr class="strong"><th scope="row" colspan="3">finalized level</th>
      ${features.map((feature) => html`<td class="mono">${finalized[feature] || 'off'}</td>`)}</tr>
    ${cluster.classes.map((item) => html`<tr key=${`${item.role} ${item.nodes}`}>
      <th scope="row">${item.role}${item.nodes.length === 1 ? '' : 's'} <${Ids} ids=${item.nodes} /></th>
      <td>${item.is_newest ? item.software : html`<${Word} word=${item.software === 'unknown' ? 'unknown' : 'mixed'} text=${item.software} />`}</td>
      <td class="number">${item.nodes.length}</td>
      ${features.map((feature) => cell(item, feature))}
    </tr>`)}
  <//>`;
}

export function Changes({ changes, names, now }) {
  return html`<${Table} caption="Changes of finalized levels, newest first" columns=${['when', 'feature', 'change', '#revision', '#epoch', 'how it was seen']}>
    ${changes.map((change) => html`<tr key=${`${change.feature} ${change.revision}`}>
      <td><${Since} ms=${change.append_ms >= 0 ? change.append_ms : change.seen_ms} now=${now} suffix=" ago" /></td>
      <th scope="row" class="mono">${change.feature}</th>
      <td>${change.kind}: <span class="mono">${levelChange(names, change)}</span></td>
      <td class="number">${change.revision}</td><td class="number">${change.epoch}</td>
      <td>${change.from_snapshot ? 'found in a snapshot' : 'live'}</td>
    </tr>`)}
  <//>`;
}

function nodesOf(cluster) {
  const words = new Map();
  const worst = ['unknown', 'silent', 'fenced', 'left', 'newest'];
  for (const item of cluster.classes) {
    const [fenced, silent] = [new Set(item.fenced), new Set(item.silent)];
    for (const id of item.nodes) {
      const word = silent.has(id) ? 'silent' : fenced.has(id) ? 'fenced' : item.is_newest ? 'newest' : item.software === 'unknown' ? 'unknown' : 'left';
      if (!words.has(id) || worst.indexOf(word) < worst.indexOf(words.get(id))) words.set(id, word);
    }
  }
  return [...words].sort(([a], [b]) => a - b).map(([id, word]) => ({ id, word }));
}

export function Cluster({ store }) {
  const { cluster, changes, readiness } = store.documents;
  if (!cluster) return html`<section><${Tabs} store=${store} /></section>`;
  const now = store.now();
  return html`<section>
    <${Tabs} store=${store} />
    <h2>Roll</h2>
    <${Left} cluster=${cluster} ghosts=${readiness && readiness.ghosts} />
    <${Classes} cluster=${cluster} />
    ${cluster.learned.map((note) => html`<p>${note}</p>`)}
    <${IdGrid} store=${store} name="nodes" nodes=${nodesOf(cluster)} />
    <h2>Next level</h2>
    <${Readiness} store=${store} />
    <h2>Alerts</h2>
    <${Table} caption="Alerts of this cluster that fire" columns=${ALERT_COLUMNS.slice(0, 1).concat(ALERT_COLUMNS.slice(2))} empty="no alert fires">
      ${alertRows({ alerts: cluster.firing, now, isShort: true })}
    <//>
    <h2>Changes</h2>
    ${changes ? html`<${Changes} changes=${changes.items} names=${store.levels.names} now=${now} />` : html`<${Refused} refusal=${store.refusals.changes} />`}
  </section>`;
}
