// A rehearsal of steps on a model of the cluster's controllers: no cluster is touched.
import { Command, Refused, Table, Word, counted, html, levelName, link, quoted } from './parts.js';
import { Tabs } from './tabs.js';

const LONG_RUN = 12;
const EXAMPLES = [['stop a broker', () => 'stop:broker-1'], ['raise the levels now', (release) => `upgrade:release=${release}`], ['roll, then raise the levels', (release) => `restart:all@${release}\nupgrade:release=${release}`]];

function isRestart(step) {
  return step.verdict === 'accepted' && !step.messages.length && !step.notes.length && /^(stop|register):/.test(step.step);
}

// Long runs of restarts are one row.
function drawn(steps) {
  const rows = [];
  let run = [];
  const end = () => {
    if (run.length >= LONG_RUN) rows.push({ ...run[0], last: run[run.length - 1].number, step: `${run.length} stops and starts`, effects: run.flatMap((step) => step.effects.filter((text) => /becomes active|no majority/.test(text))) });
    else rows.push(...run);
    run = [];
  };
  steps.map((step, index) => ({ ...step, number: index + 1 })).forEach((step) => {
    if (isRestart(step)) run.push(step);
    else { end(); rows.push(step); }
  });
  end();
  return rows;
}

function Outcome({ store }) {
  const { documents: { rehearsal: found }, refusals, route, levels } = store;
  if (!(route.steps || '').trim()) return html`<p class="dim">The steps run on a model of Kafka's controller, with the known state of this cluster. Nothing is sent to it.</p>`;
  if (!found) return html`<${Refused} refusal=${refusals.rehearsal} />`;
  const last = found.steps[found.steps.length - 1];
  const texts = (step) => [
    ...step.messages.map((text) => html`<li><q class="mono">${text}</q> <span class="dim">${step.responder}</span></li>`),
    ...step.effects.map((text) => html`<li>${text}</li>`),
    ...step.notes.map((text) => html`<li class="dim">${text}</li>`),
    ...step.consequences.flatMap((item) => item.costs.map((cost) => html`<li>${item.feature} ${item.level}: ${cost}</li>`)),
  ];
  return html`<p class="verdict"><${Word} word=${found.verdict} /> by controller ${found.controller}, Kafka ${found.release}${found.exact ? '' : ', whose words may differ'}</p>
    <${Table} caption=${counted(found.steps.length, 'step')} columns=${['#step', 'what', 'outcome', 'controller response and effects']}>
      ${drawn(found.steps).map((step) => html`<tr key=${step.number}><td class="number">${step.number}${step.last ? `-${step.last}` : ''}</td><th scope="row" class="mono">${step.step}</th>
        <td><${Word} word=${step.verdict} /></td><td class="wrap">${texts(step).length ? html`<ul class="plain">${texts(step)}</ul>` : '–'}</td></tr>`)}
    <//>
    ${last && html`<p>Levels after it: <span class="mono">${Object.entries(last.levels).map(([name, level]) => `${name} ${levelName(levels.names, name, level)}`).join(', ') || 'none'}</span></p>`}`;
}

export function Rehearsal({ store, open }) {
  const { route, levels } = store;
  const { cluster } = route;
  const newest = levels.releases[levels.releases.length - 1] || '';
  function submit(event) {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    open(link({ view: 'rehearsal', cluster, steps: given.get('steps').trim(), release: given.get('release') }));
  }
  const steps = (route.steps || '').split('\n').map((step) => step.trim()).filter(Boolean);
  return html`<section>
    <${Tabs} store=${store} />
    <h2>Rehearsal</h2>
    <form class="rehearsal" onSubmit=${submit}>
      <label for="steps">Steps, one per line, at most 20</label>
      <textarea id="steps" name="steps" rows="5" spellcheck="false" maxlength="4000" placeholder="restart:all@4.3" key=${route.steps || ''} defaultValue=${route.steps || ''}></textarea>
      <p class="tools"><label>Active controller runs <select name="release"><option value="">its known release</option>
        ${levels.releases.slice(-8).map((release) => html`<option value=${release} selected=${route.release === release}>${release}</option>`)}</select></label>
        <button>Rehearse</button></p>
      <p class="tools">Examples: ${EXAMPLES.map(([text, make]) => html`<a class="filter" href=${link({ view: 'rehearsal', cluster, steps: make(newest) })}>${text}</a>`)}</p>
    </form>
    <${Outcome} store=${store} />
    ${steps.length > 0 && html`<${Command} text=${`featurewatch rehearse --bootstrap-controller HOST:PORT ${steps.map((step) => `--step ${quoted(step)}`).join(' ')}${route.release ? ` --release ${quoted(route.release)}` : ''}`} />`}
  </section>`;
}
