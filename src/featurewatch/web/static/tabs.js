// The head of all views of one cluster: its name, its state, and links to its other views.
import { Copy, Progress, Since, Word, html, link } from './parts.js';
import { stateText } from './fleet.js';

const TABS = [
  ['cluster', 'Roll'], ['upgrade', 'Upgrade'], ['picture', 'Picture'], ['history', 'History'], ['operations', 'Operations'], ['nodes', 'Views of nodes'], ['quorum', 'Quorum'],
  ['migration', 'Migration'], ['rehearsal', 'Rehearsal'],
];

function State({ cluster, now }) {
  return html`<dl class="facts">
    <div><dt>upgrade</dt><dd><${Word} word=${cluster.state} text=${stateText(cluster)} />
      ${cluster.since_ms >= 0 && html`<span class="dim"> for <${Since} ms=${cluster.since_ms} now=${now} /></span>`}</dd></div>
    <div><dt>roll</dt><dd><${Progress} value=${cluster.nodes_on_newest} total=${cluster.nodes}
      text=${cluster.newest_release ? `${cluster.nodes_on_newest} of ${cluster.nodes} nodes on ${cluster.newest_release}` : `${cluster.nodes} nodes, release not known`} /></dd></div>
    <div><dt>health</dt><dd><${Word} word=${cluster.health} />${cluster.unknown_reason && html`<span> ${cluster.unknown_reason}</span>`}</dd></div>
    <div><dt>active controller</dt><dd class="mono">${cluster.leader_id >= 0 ? cluster.leader_id : html`<${Word} word="unknown" />`}</dd></div>
    <div><dt>revision</dt><dd class="mono">${cluster.revision} <span class="dim">(epoch ${cluster.epoch})</span></dd></div>
    <div><dt>sources</dt><dd>${Object.entries(cluster.sources).map(([name, state]) => html`<span class="source">${name} <${Word} word=${state} /></span>`)}</dd></div>
    <div><dt>last state</dt><dd><${Since} ms=${cluster.at_ms} now=${now} suffix=" ago" /></dd></div>
  </dl>`;
}

function Migrating({ migration, cluster }) {
  if (!migration.in_progress) return null;
  return html`<p class="banner"><${Word} word="warning" text="migrating to KRaft" />: do not change metadata.version now. <a href=${link({ view: 'migration', cluster })}>Progress of the migration</a></p>`;
}

export function Tabs({ store }) {
  const { cluster, view } = store.route;
  const { documents, refusals } = store;
  return html`<h1><span class="mono">${cluster}</span> <${Copy} text=${cluster || ''} label="the cluster's id" />
      ${documents.cluster && documents.cluster.name && html` <span>${documents.cluster.name}</span>`}</h1>
    ${refusals.cluster && html`<p class="banner"><${Word} word="unknown" />: ${refusals.cluster.message}</p>`}
    ${documents.cluster && html`<${State} cluster=${documents.cluster} now=${store.now()} />
      <${Migrating} migration=${documents.cluster.migration} cluster=${cluster} />`}
    <nav aria-label="Views of the cluster" class="tabs">${TABS.map(([name, text]) => html`<a href=${link({ view: name, cluster })} aria-current=${view === name ? 'page' : null}>${text}</a>`)}</nav>`;
}
