// Alerts and sources: rows of all clusters.
import { ClusterLink, More, Since, Table, Word, html, link } from './parts.js';

export const ALERT_COLUMNS = ['severity', 'cluster', 'since', 'rule', 'what to do', 'about'];

export function alertRows({ alerts, now, isShort }) {
  return alerts.map((alert) => html`<tr key=${alert.id}>
    <td><${Word} word=${alert.state === 'resolved' ? 'resolved' : alert.severity} /></td>
    ${isShort ? null : html`<td><${ClusterLink} id=${alert.cluster} /></td>`}
    <td><${Since} ms=${alert.since_ms} now=${now} /></td>
    <th scope="row">${alert.rule}</th>
    <td class="wrap">${alert.summary}</td>
    <td class="mono">${Object.entries(alert.subject).map(([name, value]) => `${name} ${value}`).join(', ')}</td>
  </tr>`);
}

export function Alerts({ store }) {
  const { route } = store;
  const states = ['firing', 'resolved'];
  const state = route.state || 'firing';
  return html`<section>
    <h1>Alerts</h1>
    <p class="tools">${states.map((item) => html`<a class="filter" aria-current=${state === item ? 'true' : null}
      href=${link({ view: 'alerts', state: item })}>${item === 'resolved' ? 'resolved in the last hour' : item}</a>`)}</p>
    <${Table} caption=${`${store.total} alerts, most severe and longest first`} columns=${ALERT_COLUMNS} empty=${store.loaded ? 'no alert' : 'reading'}>
      ${alertRows({ alerts: store.items, now: store.now() })}
    <//>
    <${More} store=${store} />
  </section>`;
}

export function Sources({ store }) {
  return html`<section>
    <h1>Sources</h1>
    <${Table} caption=${`${store.total} sources, those that do not follow first`} columns=${['cluster', 'source', 'state', 'last state', 'why']} empty=${store.loaded ? 'no source' : 'reading'}>
      ${store.items.map((row) => html`<tr key=${`${row.cluster} ${row.source}`}>
        <th scope="row"><${ClusterLink} id=${row.cluster} /></th><td>${row.source}</td>
        <td><${Word} word=${row.state} /></td>
        <td><${Since} ms=${row.at_ms} now=${store.now()} suffix=" ago" /></td>
        <td class="wrap">${row.detail || (row.state === 'following' ? '' : '–')}</td>
      </tr>`)}
    <//>
    <${More} store=${store} />
  </section>`;
}
