// The rates of all rules together: of this process as charts, and of all processes as numbers.

import { $, count, el, rate, setText } from "./dom.js";
import { areaChart } from "./chart.js";
import * as address from "./address.js";

const columns = [
  ["admitted", "Admitted"],
  ["refused", "Refused"],
  ["shadow", "Over, in shadow"],
  ["undecided", "Undecided"],
];

const keep = 3600; // points, one a second
let points = [];
let span = 120; // seconds that charts show
let everywhere = null; // calls of all processes
const totals = [0, 0, 0, 0];

const tiles = columns.map(([name, title]) => {
  const value = el("span", {}, "0");
  const all = el("p", { class: "everywhere" });
  const total = el("p", { class: "total" });
  const chart = areaChart(title);
  $("tiles").append(el("article", { class: "tile", "data-column": name },
    el("h2", {}, title), el("p", { class: "value" }, value, el("small", {}, " /s")), all, total, ...chart.elements));
  return { value, all, total, chart };
});

// reset begins with the points that the server has, before those that were seen of the same process.
export function reset(state, same) {
  const first = state.points[0]?.at ?? Infinity;
  points = [...(same ? points.filter((p) => p.at < first) : []), ...state.points];
  state.totals.forEach((n, i) => { totals[i] = n; });
  draw();
}

export function add(point) {
  points.push(point);
  points = points.slice(-keep);
  point.n.forEach((n, i) => { totals[i] += n; });
  draw();
}

// setAll takes what all processes have told.
export function setAll(calls) {
  everywhere = calls;
  draw();
}

// merged puts points together, so that a chart has no more than it can show.
function merged() {
  const step = (span / 120) * 1000;
  if (step === 1000) return points;
  const slots = new Map();
  for (const p of points) {
    const at = Math.floor(p.at / step) * step;
    const slot = slots.get(at) ?? { at, seconds: 0, n: [0, 0, 0, 0] };
    slot.seconds += p.seconds;
    p.n.forEach((n, i) => { slot.n[i] += n; });
    slots.set(at, slot);
  }
  return [...slots.values()];
}

function draw() {
  const last = points.at(-1);
  const now = last ? last.at : Date.now();
  const shown = merged();
  tiles.forEach((t, i) => {
    setText(t.value, last ? rate(last.n[i] / last.seconds) : "0");
    t.all.hidden = !(everywhere?.processes > 1);
    if (!t.all.hidden) setText(t.all, `all ${count(everywhere.processes)} processes: ${rate(everywhere.decided[i])} /s`);
    setText(t.total, `${count(totals[i])} since start`);
    t.chart.draw(shown.map((p) => [p.at, p.n[i] / p.seconds]), now, span);
  });
}

// restore shows what an address says.
export function restore({ range }) {
  $("range").value = range ?? "120";
  if ($("range").value === "") $("range").value = "120";
  span = Number($("range").value);
  draw();
}

$("range").addEventListener("change", () => {
  span = Number($("range").value);
  address.write({ range: span === 120 ? null : String(span) });
  draw();
});

export const latency = () => points.at(-1)?.latency ?? null;
