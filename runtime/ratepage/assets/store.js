// The store: its breakers, latency, memory and failures.

import { $, bar, bytes, clock, count, duration, el, setText } from "./dom.js";
import { latency } from "./tiles.js";
import { summary as undecided } from "./undecided.js";

let redis = { breakers: [], memory: null, failures: [] };
const parts = ["p50", "p95", "p99"].map((name) => ({ name, value: el("dd", {}, "–") }));
const rest = el("div");
let drawn = "";

$("redis").append(el("dl", { class: "pairs" }, ...parts.map((p) => el("div", {}, el("dt", {}, `Decision, ${p.name}`), p.value))), rest);

export function set(view) {
  redis = view;
  draw();
}

// trouble is what is wrong with the store, in words, or nothing.
export const trouble = () => (redis.breakers.some((b) => b.open) ? "Circuit breaker open" : undecided());

// draw shows the latency of the last seconds, and the rest if it has changed.
export function draw() {
  const l = latency();
  for (const p of parts) setText(p.value, l && l.calls > 0 ? duration(l[`${p.name}_us`] / 1000) : "–");
  const wrong = trouble();
  setText($("redis-summary"), wrong || "Answering");
  $("redis-summary").classList.toggle("bad", wrong !== "");
  const text = JSON.stringify(redis);
  if (text === drawn) return;
  drawn = text;
  rest.replaceChildren(...memory(), ...breakers(), ...failures());
}

function memory() {
  const m = redis.memory;
  if (!m) return [];
  const share = m.max > 0 ? m.used / m.max : 0;
  return [el("h3", {}, "Memory"), bar(share, m.high || null),
    el("p", {}, `${bytes(m.used)} of ${bytes(m.max)}, ${Math.round(share * 100)} %`, el("span", { class: "quiet" }, ` at ${clock(m.at)}`))];
}

function breakers() {
  if (redis.breakers.length === 0) return [];
  return [el("h3", {}, "Circuit breakers"), el("ul", { class: "list" }, ...redis.breakers.map((b) => el("li", {},
    el("span", { class: b.open ? "bad" : null }, b.node || "The server", b.open ? ": open" : ": not open"), el("span", { class: "when" }, `since ${clock(b.since)}`))))];
}

function failures() {
  if (redis.failures.length === 0) return [el("p", { class: "empty foot" }, "No call has failed since the program started.")];
  return [el("h3", {}, "Failures since the program started"), el("ul", { class: "list" }, ...redis.failures.map((f) => el("li", {},
    el("span", {}, el("code", {}, f.class), ` ${count(f.count)}`, el("span", { class: "quiet" }, f.policy === "settling" ? ", not settled" : `, decided by fail=${f.policy}`)),
    el("span", { class: "when" }, `last ${clock(f.last)}`))))];
}
