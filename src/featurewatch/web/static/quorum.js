// The metadata quorum of a cluster: who votes, how each replica follows, and what it can lose.
import { Command, Refused, Since, Table, Word, html } from './parts.js';
import { Tabs } from './tabs.js';

const STATES = {
  following: ['good', 'follows'], behind: ['warning', 'behind'], silent: ['critical', 'does not fetch'], unknown: ['unknown', 'unknown'],
};
const COLUMNS = ['controller', 'state', '#lag', 'since', 'directory id', 'listeners'];

function Verdict({ quorum }) {
  if (quorum.may_fail == null) return html`<p class="verdict"><${Word} word="unknown" />: how many voters may fail</p>${quorum.detail && html`<p>${quorum.detail}</p>`}`;
  const isShort = quorum.fetching < quorum.voters.length;
  const word = quorum.fetching < quorum.majority ? 'critical' : isShort ? (quorum.may_fail ? 'warning' : 'critical') : 'good';
  return html`<p class="verdict"><${Word} word=${word} text=${quorum.may_fail ? `${quorum.may_fail} may fail` : 'none may fail'} />: ${quorum.fetching} of ${quorum.voters.length} voters fetch, ${quorum.majority} are needed</p>`;
}

function Lag({ member }) {
  if (member.lag < 0) return html`<span title="not known">–</span>`;
  return member.lag.toLocaleString('en');
}

// "What is since" differs: the last fetch of one that is silent, the whole log of one that is behind.
function Stale({ member, now }) {
  if (member.since_ms < 0) return '–';
  return html`${member.state === 'silent' ? 'fetched ' : 'had the whole log '}<${Since} ms=${member.since_ms} now=${now} suffix=" ago" />`;
}

function cells(member, now) {
  const [word, text] = STATES[member.state];
  return [
    html`<span class="mono">${member.node_id}</span>${member.is_active ? ' (active)' : ''}${member.is_controller === false ? ' (not registered as a controller)' : ''}`,
    html`<${Word} word=${word} text=${text} />`,
    html`<${Lag} member=${member} />`,
    html`<${Stale} member=${member} now=${now} />`,
    member.directory_id ? html`<span class="mono">${member.directory_id}</span>` : '–',
    member.endpoints.length ? html`<span class="mono">${member.endpoints.join(', ')}</span>` : '–',
  ];
}

function Members({ caption, members, now, empty }) {
  return html`<${Table} caption=${caption} columns=${COLUMNS} empty=${empty}>${members.map((member) => {
    const [first, ...others] = cells(member, now);
    return html`<tr key=${`${member.node_id} ${member.directory_id}`}><th scope="row">${first}</th>${others.map((cell, place) => html`<td class=${COLUMNS[place + 1].startsWith('#') ? 'number' : ''}>${cell}</td>`)}</tr>`;
  })}<//>`;
}

const KINDS = {
  dynamic: 'dynamic: the metadata log has them',
  static: 'static: those of controller.quorum.voters',
};

export function Quorum({ store }) {
  const { documents: { quorum }, refusals } = store;
  if (!quorum) return html`<section><${Tabs} store=${store} /><${Refused} refusal=${refusals.quorum} /></section>`;
  const now = store.now();
  return html`<section>
    <${Tabs} store=${store} />
    <h2>Metadata quorum</h2>
    ${quorum.voters.length === 0 && quorum.detail ? html`<p class="verdict"><${Word} word="unknown" text="no voters are known" /></p><p>${quorum.detail}</p>` : html`<${Verdict} quorum=${quorum} />`}
    <dl class="facts">
      <div><dt>active controller</dt><dd class="mono">${quorum.active_controller < 0 ? html`<${Word} word="unknown" />` : `${quorum.active_controller} (epoch ${quorum.leader_epoch})`}</dd></div>
      <div><dt>voters are</dt><dd>${KINDS[quorum.voters_are] || html`<${Word} word="unknown" />`}</dd></div>
      <div><dt>kraft.version</dt><dd class="mono">${quorum.kraft_version == null ? html`<${Word} word="unknown" />` : quorum.kraft_version}</dd></div>
      <div><dt>last change described</dt><dd>${quorum.described_ms < 0 ? '–' : html`<${Since} ms=${quorum.described_ms} now=${now} suffix=" ago" />`}</dd></div>
    </dl>
    <${Members} caption="Voters" members=${quorum.voters} now=${now} empty="no voter is known" />
    <${Members} caption="Observers; brokers that the cluster lists are left out" members=${quorum.observers} now=${now} empty="no controller observes" />
    <${Command} text="featurewatch quorum describe --bootstrap-server HOST:PORT --replication --human-readable" />
  </section>`;
}
