// The upgrade of a cluster, step by step: where it is, what is next, what blocks it, and the way back.
import { Advisories } from './readiness.js';
import { Command, Ids, Refused, Table, Word, age, counted, finalizedName, html, link } from './parts.js';
import { Tabs } from './tabs.js';

const REASONS = {
  asked: '',
  rolling: 'Some nodes run it already, and others do not.',
  unfinalized: 'All nodes run it, and its levels are not finalized.',
  newest: 'It is the newest known release, and nothing else is under way.',
};
const STATES = { done: ['good', 'done'], current: ['ready', 'now'], later: ['later', 'later'], unknown: ['unknown', 'unknown'] };
const ORDER = ['no', 'unknown', 'yes'];
const MOST_COMMANDS = 3;

function Targets({ route, found, levels }) {
  const current = found ? found.target : route.target;
  const offered = found ? found.targets : levels.releases;
  return html`<p class="tools">Target: ${offered.slice(-8).map((release) => html`<a class="filter" aria-current=${current === release ? 'true' : null}
    href=${link({ view: 'upgrade', cluster: route.cluster, target: release })}>${release}</a>`)}
    ${found && REASONS[found.target_reason] && html`<span class="dim">${REASONS[found.target_reason]}</span>`}</p>`;
}

function Verdict({ found }) {
  const { target, verdict, checks } = found;
  if (found.complete) return html`<p class="verdict"><${Word} word="good" text="complete" />: the levels of Kafka ${target} are finalized</p>`;
  const count = checks.filter((check) => check.verdict === verdict).length;
  const texts = {
    yes: ['may be taken', 'nothing is in the way'],
    no: ['not yet', `${count} ${count === 1 ? 'check says' : 'checks say'} no`],
    unknown: ['unknown', `${count} of ${counted(checks.length, 'check')} cannot be answered here`],
  };
  const [word, text] = texts[verdict];
  return html`<p class="verdict">Next step: <${Word} word=${verdict} text=${word} />, ${text}</p>`;
}

function placeOf(found, id) {
  return found.steps.findIndex((step) => step.id === id) + 1;
}

// The current step: a command that changes something comes only when nothing is in the way.
function Next({ found }) {
  const step = found.steps.find(({ id }) => id === found.current);
  if (!step) return null;
  const isHeld = !found.commands.length && step.commands.length > 0;
  return html`<div class="next">
    <p><b>Step ${placeOf(found, step.id)} of ${found.steps.length}: ${step.title}</b>${step.progress && html` <span class="dim">(${step.progress})</span>`}</p>
    ${found.next_node !== null && html`<p>Next node: <b class="mono">${found.next_node}</b></p>`}
    ${found.commands.slice(0, MOST_COMMANDS).map((text) => html`<${Command} key=${text} text=${text} />`)}
    ${isHeld && html`<p class="dim">Its command comes here when nothing is in the way.</p>`}
    ${step.by_hand.length > 0 && html`<ul>${step.by_hand.map((text) => html`<li>${text}</li>`)}</ul>`}
    <p><b>The way back:</b> ${step.way_back}</p>
  </div>`;
}

// Those that hold are folded: what is in the way comes first.
function Checks({ store, found }) {
  if (found.complete) return null;
  const open = found.checks.filter(({ verdict }) => verdict !== 'yes').sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  const held = found.checks.filter(({ verdict }) => verdict === 'yes');
  const isShown = store.opened.has('checks');
  return html`${open.length > 0 && html`<${Table} caption="What must hold before the next step, and does not or may not" columns=${['check', 'holds', 'why', 'what to do, or what would show it']}>
      ${open.map((check, place) => html`<tr key=${`${check.name} ${place}`}><th scope="row" class="mono">${check.name}</th><td><${Word} word=${check.verdict} /></td>
        <td class="wrap">${check.text}</td><td class="wrap">${check.remedy || (check.waits ? 'wait' : '–')}</td></tr>`)}
    <//>`}
    ${held.length > 0 && html`<details open=${isShown} onToggle=${(event) => store.toggle('checks', event.currentTarget.open)}><summary>${counted(held.length, 'check')} ${held.length === 1 ? 'holds' : 'hold'}: ${held.map(({ name }) => name).join(', ')}</summary>
      ${isShown && html`<ul>${held.map((check) => html`<li><${Word} word="yes" text=${check.name} />: ${check.text}</li>`)}</ul>`}</details>`}`;
}

function NoReturn({ found }) {
  if (found.complete) return null;
  const step = found.steps.find(({ id }) => id === found.no_return);
  if (!step) return html`<p>No step ahead is known to be a point of no return.</p>`;
  const isNow = step.id === found.current;
  return html`<p><${Word} word=${isNow ? 'critical' : 'warning'} text=${`Point of no return${isNow ? ': this step' : ` ahead: step ${placeOf(found, step.id)}`}`} />${isNow ? '' : `, ${step.title}. ${step.way_back}.`}</p>`;
}

function Part({ name, items, children }) {
  return items.length > 0 && html`<dt>${name}</dt><dd><ul class="plain">${items.map((item) => html`<li>${children ? children(item) : item}</li>`)}</ul></dd>`;
}

// What a step needs and does; drawn only while it is open.
function Details({ store, step }) {
  const name = `step ${step.id}`;
  const isOpen = store.opened.has(name);
  const shown = step.kind === 'roll' ? step.commands.slice(0, MOST_COMMANDS) : step.commands;
  const hidden = step.kind === 'roll' && step.commands.length > 1 ? step.node_count - shown.length : 0;
  return html`<details open=${isOpen} onToggle=${(event) => store.toggle(name, event.currentTarget.open)}><summary>needs, changes, commands<span class="sr"> of: ${step.title}</span></summary>
    ${isOpen && html`<dl class="parts">
      <${Part} name="if" items=${step.preconditions} />
      <${Part} name="changes" items=${step.changes} />
      ${step.soak_ms > 0 && html`<dt>takes</dt><dd>at least ${age(step.soak_ms)}</dd>`}
      ${step.node_count > 0 && html`<dt>nodes</dt><dd><${Ids} ids=${step.nodes} />${step.node_count > step.nodes.length && ` and ${step.node_count - step.nodes.length} more`}</dd>`}
      <${Part} name=${hidden > 0 ? `commands, and ${hidden} more, one for each node` : 'commands'} items=${shown}>${(text) => html`<${Command} text=${text} />`}<//>
      <${Part} name="by hand" items=${step.by_hand} />
    </dl>`}</details>`;
}

function Steps({ store, found }) {
  return html`<${Table} caption=${`The plan: ${counted(found.steps.length, 'step')} to Kafka ${found.target}`} columns=${['step', 'state', 'way back']}>
    ${found.steps.map((step, place) => {
      const [word, text] = STATES[step.state];
      const isNow = step.id === found.current;
      return html`<tr key=${step.id} class=${isNow ? 'now' : ''} aria-current=${isNow ? 'step' : null}>
        <th scope="row" class="step"><span class="title">${place + 1}. ${step.title}</span>${step.point_of_no_return && html`<div><${Word} word=${step.state === 'done' ? 'later' : 'critical'} text="point of no return" /></div>`}
          <${Details} store=${store} step=${step} /></th>
        <td><${Word} word=${word} text=${text} />${step.progress && step.state !== 'later' && html`<div class="progress-text">${step.progress}</div>`}</td>
        <td class="wrap">${step.way_back}</td></tr>`;
    })}
  <//>`;
}

function Levels({ found, names }) {
  const features = Object.keys({ ...found.before, ...found.after }).sort();
  const changed = features.filter((name) => (found.before[name] || 0) !== (found.after[name] || 0));
  if (!changed.length) return null;
  return html`<${Table} caption="Levels that change" columns=${['feature', 'now', 'afterwards']}>
    ${changed.map((name) => html`<tr key=${name}><th scope="row" class="mono">${name}</th><td class="mono">${finalizedName(names, name, found.before[name] || null)}</td><td class="mono">${finalizedName(names, name, found.after[name] || null)}</td></tr>`)}
  <//>`;
}

export function Upgrade({ store }) {
  const { documents: { upgrade: found }, refusals, route, levels } = store;
  const head = html`<${Tabs} store=${store} /><h2>Upgrade</h2><${Targets} route=${route} found=${found} levels=${levels} />`;
  if (!found) return html`<section>${head}<${Refused} refusal=${refusals.upgrade} /></section>`;
  return html`<section>${head}
    <${Verdict} found=${found} />
    ${found.changed.map((text) => html`<p class="banner"><${Word} word="warning" text="differs from the plan" />: ${text}</p>`)}
    <${Next} found=${found} />
    <${Checks} store=${store} found=${found} />
    <${NoReturn} found=${found} />
    <${Steps} store=${store} found=${found} />
    <${Levels} found=${found} names=${levels.names} />
    <${Advisories} advisories=${found.advisories} />
    <p>Keep the plan before the first restart, for the commands that take it; <span class="mono">--soak-hours</span> sets another time:</p>
    <${Command} text=${found.save_command} />
  </section>`;
}
