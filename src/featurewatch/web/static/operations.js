// Operations of a cluster's controller on topics and partitions, step by step.
import { More, Refused, Since, Table, Word, html, link } from './parts.js';
import { Tabs } from './tabs.js';

const KINDS = ['topic-creation', 'partition-addition', 'topic-deletion', 'reassignment', 'election', 'controlled-shutdown'];
const EMPTY = 'no step is held: are operations followed (--operations), and did any happen since?';

export function Operations({ store }) {
  const { items, route, documents: { list }, refusals } = store;
  const now = store.now();
  return html`<section>
    <${Tabs} store=${store} />
    <p class="tools">${['', ...KINDS].map((kind) => html`<a class="filter" aria-current=${(route.kind || '') === kind ? 'true' : null}
      href=${link({ view: 'operations', cluster: route.cluster, kind })}>${kind || 'all'}</a>`)}</p>
    ${list ? html`<${Table} caption=${`${items.length} of ${store.total} steps, newest first`} columns=${['when', 'operation', 'step', 'reason', 'what happened', '#offset']} empty=${EMPTY}>
      ${items.map((step) => html`<tr key=${step.id}>
        <td><${Since} ms=${step.append_ms >= 0 ? step.append_ms : step.seen_ms} now=${now} suffix=" ago" /></td>
        <th scope="row">${step.kind}</th><td><${Word} word=${step.phase} /></td><td>${step.reason || '–'}</td>
        <td class="wrap">${step.summary}</td><td class="number">${step.offset}</td></tr>`)}
    <//><${More} store=${store} />` : html`<${Refused} refusal=${refusals.list} />`}
  </section>`;
}
