// The layout of a picture of a roll: the document of the API, a stretch of time and a width go in,
// and what is drawn comes out: one path for each look, however many spans there are. Pure.
const LEFT_WIDE = 116;
const LEFT_NARROW = 84;
const NARROW = 560;
const RIGHT = 12;
const STRIP = 18;
const LABEL_ROWS = 3;
const CHARACTER = 6.6;
const STEPS = [1e3, 5e3, 15e3, 6e4, 3e5, 9e5, 36e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 12096e5, 26784e5, 80352e5, 160704e5, 321408e5];

export function stamp(ms, step = 0) {
  const iso = new Date(ms).toISOString();
  if (step >= 864e5) return iso.slice(0, 10);
  return step >= 6e4 ? iso.slice(5, 16).replace('T', ' ') : iso.slice(step ? 11 : 0, 19).replace('T', ' ');
}

function ticks(from, to, most) {
  const step = STEPS.find((size) => (to - from) / size <= most) || STEPS[STEPS.length - 1];
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push({ at, text: stamp(at, step) });
  return found;
}

export function rowHeight(count) {
  return Math.max(2, Math.min(20, Math.floor(640 / Math.max(count, 1))));
}

// Labels over the lines of levels, in a few rows; one without room is left out, as the table has all.
function placed(marks, x, right) {
  const ends = Array(LABEL_ROWS).fill(-Infinity);
  const found = [];
  for (const mark of marks) {
    const at = x(mark.at);
    const width = mark.text.length * (mark.isEnd ? 1.15 : 1) * CHARACTER;
    const start = at + 4 + width > right ? at - 4 - width : at + 4;
    const row = ends.findIndex((end) => start > end + 6);
    found.push({ ...mark, x: at, row, start });
    if (row >= 0) ends[row] = Math.max(start, at) + width;
  }
  return found;
}

export function layout(picture, from, to, width) {
  const left = width < NARROW ? LEFT_NARROW : LEFT_WIDE;
  const right = width - RIGHT;
  const scale = (right - left) / Math.max(to - from, 1);
  const x = (ms) => left + (ms - from) * scale;
  const begin = picture.begin_ms;
  const [low, high] = [from - begin, to - begin];
  const height = rowHeight(picture.bands.length);
  const inner = height > 8 ? height - 3 : height > 3 ? height - 1 : height;
  const top = STRIP + LABEL_ROWS * 14 + 2 * 12 + 10;
  const paths = new Map();
  const names = [];
  const rows = [];
  let y = top;
  let role = picture.bands.length ? picture.bands[0].role : '';
  let named = -Infinity;
  for (const [place, band] of picture.bands.entries()) {
    if (band.role !== role) { y += 8; role = band.role; }
    const label = y + inner / 2 - named >= 13;
    if (label) named = y + inner / 2;
    rows.push({ place, y, label });
    const drawn = new Map();
    for (const [start, end, condition, software] of band.spans) {
      if (start > high || end < low) continue;
      const look = `${picture.conditions[condition]} ${software}`;
      const x0 = Math.max(x(start + begin), left);
      const x1 = Math.max(Math.min(x(end + begin), right), x0 + 1);
      // Spans that are narrower than a pixel, within the one that is drawn, add nothing.
      if (x1 <= (drawn.get(look) || 0)) continue;
      drawn.set(look, x1);
      const box = `M${x0.toFixed(1)} ${y}H${x1.toFixed(1)}`;
      if (!paths.has(look)) paths.set(look, { condition: picture.conditions[condition], software, parts: [] });
      paths.get(look).parts.push(picture.conditions[condition] === 'away' ? `M${x0.toFixed(1)} ${y + inner / 2}H${x1.toFixed(1)}` : `${box}v${inner}H${x0.toFixed(1)}z`);
      const text = picture.software[software] || '';
      if (inner >= 13 && picture.conditions[condition] !== 'away' && x1 - x0 > text.length * CHARACTER + 10) names.push({ x: x0 + 5, y: y + inner / 2 + 4, text, isOn: picture.conditions[condition] !== 'registered' });
    }
    y += height;
  }
  const bottom = y + 2;
  // Known moments are a pixel wide at least; all between is unknown.
  const gaps = [];
  let edge = left;
  for (const [start, end] of picture.known) {
    if (end < low || start > high) continue;
    const x0 = Math.max(x(start + begin), left);
    if (x0 > edge) gaps.push([edge, x0]);
    edge = Math.max(edge, Math.min(Math.max(x(end + begin), x0 + 1), right));
  }
  if (edge < right) gaps.push([edge, right]);
  const isIn = (at) => at >= from && at <= to;
  const marks = [
    ...picture.levels.filter(({ at_ms: at }) => isIn(at)).map((change) => ({ at: change.at_ms, text: `${change.feature} ${change.after_name}`, isEnd: false })),
    ...picture.no_return.filter(({ at_ms: at }) => isIn(at)).map((item) => ({ at: item.at_ms, text: item.known ? 'no way back' : 'a way back is not known', isEnd: true })),
  ].sort((a, b) => a.at - b.at || Number(b.isEnd) - Number(a.isEnd));
  const alerts = picture.alerts.filter((alert) => alert.begin_ms <= to && (alert.end_ms === null || alert.end_ms >= from)).map((alert) => {
    const row = alert.node ? picture.bands.findIndex((band) => band.role === alert.node.role && band.node_id === alert.node.node_id) : -1;
    const x0 = Math.max(x(alert.begin_ms), left);
    return { alert, x0, x1: Math.min(Math.max(x(alert.end_ms === null ? picture.end_ms : alert.end_ms), x0 + 3), right), y: STRIP + LABEL_ROWS * 14 + (alert.severity === 'critical' ? 6 : 18), row: row < 0 ? null : rows[row].y };
  });
  return {
    left, right, top, bottom, width, height: bottom + 4, row: height, inner, rows, names, gaps, alerts,
    paths: [...paths].map(([look, { condition, software, parts }]) => ({ look, condition, software, d: parts.join('') })),
    marks: placed(marks, x, right),
    ticks: ticks(from, to, Math.max(2, Math.floor((right - left) / 110))).map((tick) => ({ ...tick, x: x(tick.at) })),
    x,
  };
}

// Spans and what is between known periods, as far as they are in a stretch of time, oldest first.
export function pieces(picture, band, from, to) {
  const begin = picture.begin_ms;
  const found = [];
  for (const [start, end, condition, software] of band.spans) {
    for (const [first, last] of picture.known) {
      const [low, high] = [Math.max(start, first, from - begin), Math.min(end, last, to - begin)];
      if (low < high || (low === high && start === end)) found.push({ begin: low + begin, end: high + begin, condition: picture.conditions[condition], software: picture.software[software] || '' });
    }
  }
  return found.sort((a, b) => a.begin - b.begin);
}

export function unknowns(picture, from, to) {
  const found = [];
  let edge = from;
  for (const [start, end] of picture.known.map((period) => period.map((ms) => ms + picture.begin_ms))) {
    if (end < from || start > to) continue;
    if (start > edge) found.push({ begin: edge, end: start });
    edge = Math.max(edge, end);
  }
  if (edge < to) found.push({ begin: edge, end: to });
  return found;
}
