// The next level: the verdict, Kafka's own text, every blocker with its remedy, and the way back.
import { Command, Ids, Refused, Table, Word, finalizedName, html, levelName, link, quoted } from './parts.js';

const VERDICTS = { yes: 'ready', no: 'not ready', unknown: 'unknown' };

// Blockers that differ in their ids only are one row.
function groups(blockers) {
  const found = new Map();
  for (const blocker of blockers) {
    const levels = blocker.levels.map((item) => `${item.feature} ${item.level}`).join(', ');
    const remedy = blocker.remedy;
    const key = JSON.stringify([blocker.role, blocker.software, blocker.condition, blocker.verdict, levels, remedy]);
    if (!found.has(key)) found.set(key, { ...blocker, levels, ids: [], key });
    found.get(key).ids.push(blocker.node_id);
  }
  return [...found.values()];
}

function Blockers({ blockers, count }) {
  return html`<${Table} caption=${`${count} in the way`} columns=${['nodes', 'runs', 'condition', 'does not support', 'what to do']} empty="nothing is in the way">
    ${groups(blockers).map((group) => html`<tr key=${group.key}>
      <th scope="row">${group.role}${group.ids.length === 1 ? '' : 's'} <${Ids} ids=${group.ids} /></th>
      <td>${group.software || html`<${Word} word="unknown" />`}</td>
      <td><${Word} word=${group.condition === 'running' ? 'following' : 'unknown'} text=${group.condition} /></td>
      <td class="mono narrow">${group.levels || html`<${Word} word="unknown" />`}</td>
      <td class="wrap">${group.remedy}</td>
    </tr>`)}
  <//>`;
}

// The first source: a ticket or an address, which are links, or a KIP. The JSON has all of them.
function Source({ source }) {
  const address = source.startsWith('https://') ? source
    : source.startsWith('KAFKA-') ? `https://issues.apache.org/jira/browse/${source}` : null;
  return address ? html`<a href=${address} rel="noreferrer">${source.replace(/^https:\/\/([^/]+).*/, '$1')}</a>` : source;
}

export function Advisories({ advisories }) {
  if (!advisories.length) return null;
  return html`<${Table} caption=${`${advisories.length} known ${advisories.length === 1 ? 'fault' : 'faults'} on the way`} columns=${['severity', 'affects', 'fault, and what to do', 'source']}>
    ${advisories.map((item) => html`<tr key=${item.id}>
      <td><${Word} word=${item.severity} /></td>
      <td>${item.subject}<br />${item.affected}</td>
      <td class="wrap">${item.fault}<br />→ ${item.advice}</td>
      <td><${Source} source=${item.sources[0]} /><br />${item.undated ? 'read ' : ''}${item.date}</td>
    </tr>`)}
  <//>`;
}

function Controller({ response }) {
  if (!response) return null;
  const name = response.controller >= 0 ? `Controller ${response.controller}` : 'The active controller';
  const runs = response.assumed ? `assumed to run ${response.release}` : `Kafka ${response.release}`;
  return html`<figure>
    <figcaption>${name} (${runs}${response.exact ? '' : ', in words that may differ'}) would ${response.accepted ? 'accept it.' : 'refuse, with this text:'}</figcaption>
    ${response.refusals.map((text) => html`<blockquote class="mono">${text}</blockquote>`)}
  </figure>`;
}

function Levels({ features, names }) {
  const name = (feature, level) => levelName(names, feature, level);
  return html`<${Table} caption="Levels" columns=${['feature', 'state', 'finalized', 'supported by all', 'target', 'verdict']}>
    ${features.map((item) => html`<tr key=${item.feature}>
      <th scope="row" class="mono">${item.feature}</th><td><${Word} word=${item.state} /></td>
      <td class="mono">${finalizedName(names, item.feature, item.is_finalized ? 0 : item.finalized || null)}</td>
      <td class="mono">${item.supported_by_all == null ? html`<${Word} word="unknown" />` : name(item.feature, item.supported_by_all)}</td>
      <td class="mono">${name(item.feature, item.target)}</td><td><${Word} word=${item.verdict} /></td>
    </tr>`)}
  <//>`;
}

// A reason that quotes the controller, whose text is shown below it.
function repeats(text, response) {
  return Boolean(response && response.refusals.length && text.endsWith(response.refusals[0]));
}

export function Readiness({ store }) {
  const { documents: { readiness: report }, refusals, levels, route } = store;
  const targets = html`<p class="tools">Target: ${['', ...levels.releases.slice(-8)].map((release) => html`<a class="filter"
    aria-current=${(route.target || '') === release ? 'true' : null}
    href=${link({ view: 'cluster', cluster: route.cluster, target: release })}>${release || 'newest that runs'}</a>`)}</p>`;
  if (!report) {
    return html`${targets}<${Refused} refusal=${refusals.readiness} />`;
  }
  const target = report.target || route.target;
  const consequences = report.features.flatMap((item) => item.consequences);
  return html`${targets}
    <p class="verdict"><${Word} word=${report.verdict} text=${VERDICTS[report.verdict]} />
      ${target ? ` for Kafka ${target}` : ''}</p>
    <p><a href=${link({ view: 'upgrade', cluster: route.cluster, target: route.target })}>The way there, step by step</a></p>
    ${report.reasons.filter((text) => !repeats(text, report.controller_response)).map((text) => html`<p>${text}</p>`)}
    ${report.learned.map((note) => html`<p>${note}</p>`)}
    <${Controller} response=${report.controller_response} />
    <${Blockers} blockers=${report.blockers} count=${report.blocker_count} />
    <${Advisories} advisories=${report.advisories} />
    <${Levels} features=${report.features} names=${levels.names} />
    ${report.downgrade_path && html`<p><b>The way back:</b> ${report.downgrade_path.reason}</p>`}
    ${consequences.length > 0 && html`<details><summary>What it changes (${consequences.length})</summary><ul>
      ${consequences.map((item) => html`<li><span class="mono">${item.feature} ${item.level}</span>: ${item.change} ${item.costs.join(' ')}</li>`)}
    </ul></details>`}
    <${Command} text=${`featurewatch readiness --cluster ${quoted(route.cluster)}${target ? ` --target ${target}` : ''}`} />
    ${target && report.verdict === 'yes' && html`<${Command} text=${`featurewatch features upgrade --bootstrap-server HOST:PORT --release-version ${target} --dry-run`} />`}`;
}
