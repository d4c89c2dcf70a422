// Fleet × release: which clusters can go to a release, and how much is in the way of the others.
import { Command, More, Refused, Table, Word, html, link } from './parts.js';
import { stateText } from './fleet.js';

const TEXTS = { yes: 'yes', no: 'no', unknown: 'unknown', finalized: 'is there' };

function why(row) {
  const { blocker_names: names, blockers } = row;
  if (!blockers) return row.reasons.length ? row.reasons.join(' ') : '–';
  return `${names.slice(0, 4).join(', ')}${blockers > 4 ? ` and ${blockers - 4} more` : ''}`;
}

function wayBack(row) {
  if (row.lossless === null) return html`<${Word} word="unknown" />`;
  return row.lossless ? `without loss, to ${row.downgrade_to.join(', ') || 'none'}` : 'none without loss';
}

export function Releases({ store }) {
  const { route, levels, documents: { list }, refusals } = store;
  const target = route.target || levels.releases[levels.releases.length - 1] || '';
  const shown = list && list.target === target ? list : null;
  const choose = (parameters) => link({ view: 'releases', target, q: route.q, ...parameters });
  return html`<section>
    <h1>Clusters that can go to Kafka ${target}</h1>
    <p class="tools">Target: ${levels.releases.slice(-8).map((release) => html`<a class="filter" aria-current=${target === release ? 'true' : null}
      href=${choose({ target: release, verdict: route.verdict })}>${release}</a>`)}</p>
    <p class="tools">${['', ...Object.keys(TEXTS)].map((verdict) => html`<a class="filter" aria-current=${(route.verdict || '') === verdict ? 'true' : null}
      href=${choose({ verdict })}>${verdict ? TEXTS[verdict] : 'all'}${verdict && shown ? ` ${shown.counts[verdict]}` : ''}</a>`)}</p>
    ${shown ? html`<${Table} caption=${`${store.items.length} of ${store.total} clusters, those that cannot go first, the fewest blockers first`}
      columns=${['cluster', 'can go', '#in the way', 'who and why', 'upgrade', 'way back']} empty="no cluster">
      ${store.items.map((row) => html`<tr key=${row.cluster}>
        <th scope="row"><a class="mono" href=${link({ view: 'cluster', cluster: row.cluster, target })}>${row.cluster}</a></th>
        <td><${Word} word=${row.verdict} text=${TEXTS[row.verdict]} /></td>
        <td class="number">${row.verdict === 'unknown' && !row.blockers ? '–' : row.blockers}</td>
        <td class="wrap">${why(row)}</td>
        <td><${Word} word=${row.state} text=${stateText(row)} /></td>
        <td>${wayBack(row)}</td>
      </tr>`)}
    <//>
    <${More} store=${store} />` : html`<${Refused} refusal=${refusals.list} />`}
    <${Command} text=${`featurewatch fleet readiness --lake LAKE --target ${target}`} />
  </section>`;
}
