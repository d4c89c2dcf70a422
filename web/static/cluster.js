// One cluster: how far its roll is, who is left, and its levels by classes of nodes.
import { Copy, Ids, Progress, Since, Table, Word, html, levelName } from './parts.js';
import { stateText } from './fleet.js';
import { Readiness } from './readiness.js';
import { ALERT_COLUMNS, alertRows } from './lists.js';

function State({ cluster, now }) {
  return html`<dl class="facts">
    <div><dt>upgrade</dt><dd><${Word} word=${cluster.state} text=${stateText(cluster)} />
      ${cluster.since_ms >= 0 && html`<span class="dim"> for <${Since} ms=${cluster.since_ms} now=${now} /></span>`}</dd></div>
    <div><dt>roll</dt><dd><${Progress} value=${cluster.nodes_on_newest} total=${cluster.nodes}
      text=${cluster.newest_release ? `${cluster.nodes_on_newest} of ${cluster.nodes} nodes on ${cluster.newest_release}` : `${cluster.nodes} nodes, release not known`} /></dd></div>
    <div><dt>health</dt><dd><${Word} word=${cluster.health} />${cluster.unknown_reason && html`<span> ${cluster.unknown_reason}</span>`}</dd></div>
    <div><dt>active controller</dt><dd class="mono">${cluster.leader_id >= 0 ? cluster.leader_id : '–'}</dd></div>
    <div><dt>revision</dt><dd class="mono">${cluster.revision} <span class="dim">(epoch ${cluster.epoch})</span></dd></div>
    <div><dt>sources</dt><dd>${Object.entries(cluster.sources).map(([name, state]) => html`<span class="source">${name} <${Word} word=${state} /></span>`)}</dd></div>
    <div><dt>last state</dt><dd><${Since} ms=${cluster.at_ms} now=${now} suffix=" ago" /></dd></div>
  </dl>`;
}

function Left({ cluster, ghosts }) {
  const left = new Set();
  for (const item of cluster.classes) if (!item.is_newest) item.nodes.forEach((id) => left.add(id));
  const fenced = new Set(cluster.classes.flatMap((item) => item.fenced));
  const silent = new Set(cluster.classes.flatMap((item) => item.silent));
  return html`<dl class="facts" id="left">
    <div><dt>left to upgrade</dt><dd><${Ids} ids=${[...left]} /></dd></div>
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
    <tr class="strong"><th scope="row">finalized level</th><td></td><td></td>
      ${features.map((feature) => html`<td class="mono">${finalized[feature] || 'off'}</td>`)}</tr>
    ${cluster.classes.map((item) => html`<tr key=${`${item.role} ${item.nodes}`}>
      <th scope="row">${item.role}${item.nodes.length === 1 ? '' : 's'} <${Ids} ids=${item.nodes} /></th>
      <td>${item.is_newest ? item.software : html`<${Word} word=${item.software === 'unknown' ? 'unknown' : 'mixed'} text=${item.software} />`}</td>
      <td class="number">${item.nodes.length}</td>
      ${features.map((feature) => cell(item, feature))}
    </tr>`)}
  <//>`;
}

function Migration({ migration }) {
  if (!migration.in_progress) return null;
  return html`<p class="banner"><${Word} word="warning" text="migrating to KRaft" />: ${migration.state},
    ${migration.brokers_in_zookeeper} brokers in ZooKeeper, not registered with the KRaft controllers:
    <${Ids} ids=${migration.missing} />. Do not change metadata.version now.</p>`;
}

function Changes({ changes, names, now }) {
  return html`<${Table} caption="Changes of finalized levels, newest first" columns=${['when', 'feature', 'change', '#revision', '#epoch', 'how it was seen']}>
    ${changes.map((change) => html`<tr key=${`${change.feature} ${change.revision}`}>
      <td><${Since} ms=${change.append_ms >= 0 ? change.append_ms : change.seen_ms} now=${now} suffix=" ago" /></td>
      <th scope="row" class="mono">${change.feature}</th>
      <td>${change.kind}: <span class="mono">${levelName(names, change.feature, change.before)} → ${levelName(names, change.feature, change.after)}</span></td>
      <td class="number">${change.revision}</td><td class="number">${change.epoch}</td>
      <td>${change.from_snapshot ? 'found in a snapshot' : 'live'}</td>
    </tr>`)}
  <//>`;
}

export function Cluster({ store }) {
  const { cluster, route } = store;
  const title = html`<h1><span class="mono">${route.cluster}</span> <${Copy} text=${route.cluster || ''} label="the cluster's id" /></h1>`;
  if (store.missing) return html`<section>${title}<p class="banner"><${Word} word="unknown" />: ${store.missing}</p></section>`;
  if (!cluster || cluster.cluster !== route.cluster) return html`<section>${title}<p class="dim">reading</p></section>`;
  const now = store.now();
  return html`<section>
    ${title}
    <${State} cluster=${cluster} now=${now} />
    <${Migration} migration=${cluster.migration} />
    <h2>Roll</h2>
    <${Left} cluster=${cluster} ghosts=${store.readiness && store.readiness.ghosts} />
    <${Classes} cluster=${cluster} />
    <h2>Next level</h2>
    <${Readiness} store=${store} />
    <h2>Alerts</h2>
    <${Table} caption="Alerts of this cluster that fire" columns=${ALERT_COLUMNS.slice(0, 1).concat(ALERT_COLUMNS.slice(2))} empty="no alert fires">
      ${alertRows({ alerts: cluster.firing, now, isShort: true })}
    <//>
    <h2>Changes</h2>
    <${Changes} changes=${store.changes} names=${store.levels.names} now=${now} />
  </section>`;
}
