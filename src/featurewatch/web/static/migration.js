// The migration of a cluster from ZooKeeper to KRaft: how far it is, and which brokers are missing.
import { Ids, Refused, Word, html } from './parts.js';
import { Tabs } from './tabs.js';

function Verdict({ migration }) {
  if (!migration.in_progress) return html`<p class="verdict"><${Word} word=${migration.state === 'unknown' ? 'unknown' : 'good'} text=${migration.state === 'unknown' ? 'not known' : 'no migration is in progress'} /></p>`;
  return html`<p class="verdict"><${Word} word="warning" text="in progress: do not change metadata.version now" /></p>
    <p>Kafka 3.5 and newer refuse it, and 3.4 does not. Every broker in ZooKeeper has to register with the KRaft controllers first.</p>`;
}

export function Migration({ store }) {
  const { documents: { cluster }, refusals } = store;
  if (!cluster) return html`<section><${Tabs} store=${store} /><${Refused} refusal=${refusals.cluster} /></section>`;
  const { migration, controller, authority } = cluster;
  return html`<section>
    <${Tabs} store=${store} />
    <h2>Migration to KRaft</h2>
    <${Verdict} migration=${migration} />
    <dl class="facts">
      <div><dt>state in the log</dt><dd>${migration.state === 'unknown' ? html`<${Word} word="unknown" />` : migration.state}</dd></div>
      <div><dt>levels are decided by</dt><dd>${authority}</dd></div>
      <div><dt>brokers in ZooKeeper</dt><dd class="mono">${migration.brokers_in_zookeeper}</dd></div>
      <div><dt>not registered with the KRaft controllers</dt><dd><${Ids} ids=${migration.missing} /></dd></div>
      <div><dt>KRaft controller in ZooKeeper</dt><dd class="mono">${migration.kraft_controller_id >= 0 ? migration.kraft_controller_id : 'none'}</dd></div>
      <div><dt>controller in ZooKeeper</dt><dd class="mono">${controller.node_id >= 0 ? `${controller.node_id} (epoch ${controller.epoch})` : 'none'}</dd></div>
    </dl>
  </section>`;
}
