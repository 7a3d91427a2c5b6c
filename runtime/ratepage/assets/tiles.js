// The rates of all rules together.

import { $, count, el, rate, setText } from "./dom.js";
import { areaChart } from "./chart.js";

const columns = [
  ["admitted", "Admitted"],
  ["refused", "Refused"],
  ["shadow", "Over, in shadow"],
  ["undecided", "Undecided"],
];

const keep = 120;
let points = [];
const totals = [0, 0, 0, 0];

const tiles = columns.map(([name, title]) => {
  const value = el("span", {}, "0");
  const total = el("p", { class: "total" });
  const chart = areaChart(title);
  $("tiles").append(el("article", { class: "tile", "data-column": name },
    el("h2", {}, title), el("p", { class: "value" }, value, el("small", {}, " /s")), total, ...chart.elements));
  return { value, total, chart };
});

// reset begins with the points that the server has.
export function reset(state) {
  points = state.points;
  state.totals.forEach((n, i) => { totals[i] = n; });
  draw();
}

export function add(point) {
  points.push(point);
  points = points.slice(-keep);
  point.n.forEach((n, i) => { totals[i] += n; });
  draw();
}

function draw() {
  const last = points.at(-1);
  const now = last ? last.at : Date.now();
  tiles.forEach((t, i) => {
    setText(t.value, last ? rate(last.n[i] / last.seconds) : "0");
    setText(t.total, `${count(totals[i])} since start`);
    t.chart.draw(points.map((p) => [p.at, p.n[i] / p.seconds]), now);
  });
}

export const latency = () => points.at(-1)?.latency ?? null;
