// The store: its breakers, latency, memory and failures; and the keys that are
// refused most.

import { $, bar, bytes, clock, count, duration, el, setText } from "./dom.js";
import { latency } from "./tiles.js";
import { ask } from "./lookup.js";

let redis = { breakers: [], memory: null, failures: [] };
const parts = ["p50", "p95", "p99"].map((name) => ({ name, value: el("dd", {}, "–") }));
const rest = el("div");
let drawn = "";

$("redis").append(el("dl", { class: "pairs" }, ...parts.map((p) => el("div", {}, el("dt", {}, `Decision, ${p.name}`), p.value))), rest);

export function set(view) {
  redis = view;
  draw();
}

// draw shows the latency of the last seconds, and the rest if it has changed.
export function draw() {
  const l = latency();
  for (const p of parts) setText(p.value, l && l.calls > 0 ? duration(l[`${p.name}_us`] / 1000) : "–");
  const text = JSON.stringify(redis);
  if (text === drawn) return;
  drawn = text;
  const open = redis.breakers.filter((b) => b.open);
  setText($("redis-summary"), open.length > 0 ? "Circuit breaker open" : "Answering");
  $("redis-summary").classList.toggle("bad", open.length > 0);
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
    el("span", { class: b.open ? "bad" : null }, b.node || "The server", b.open ? ": open" : ": closed again"), el("span", { class: "when" }, `since ${clock(b.since)}`))))];
}

function failures() {
  if (redis.failures.length === 0) return [el("p", { class: "empty foot" }, "No call has failed since the program started.")];
  return [el("h3", {}, "Failures since the program started"), el("ul", { class: "list" }, ...redis.failures.map((f) => el("li", {},
    el("span", {}, el("code", {}, f.class), ` ${count(f.count)}`, el("span", { class: "quiet" }, f.policy === "settling" ? ", not settled" : `, decided by fail=${f.policy}`)),
    el("span", { class: "when" }, `last ${clock(f.last)}`))))];
}

// setDenied shows the keys that are refused most.
export function setDenied(view, keys) {
  const box = $("denied");
  setText($("denied-span"), keys === "off" ? "" : `In the last ${duration(view.span_ms)} to ${duration(2 * view.span_ms)}`);
  if (keys === "off") {
    box.replaceChildren(el("p", { class: "empty" }, "Keys are not counted: the program turns that on by ", el("code", {}, "ratepage.WithKeys"), "."));
    return;
  }
  if (view.keys.length === 0) {
    box.replaceChildren(el("p", { class: "empty" }, "No key was refused."));
    return;
  }
  const most = view.keys[0].count;
  box.replaceChildren(el("ol", { class: "denied" }, ...view.keys.slice(0, 10).map((k) => el("li", {},
    keys === "plain" ? el("button", { class: "name", type: "button", onclick: () => ask(k.rule, k.key) }, k.key || "(no key)") : el("code", {}, k.key || "(no key)"),
    el("span", { class: "count" }, k.over > 0 ? `≤ ${count(k.count)}` : count(k.count)),
    el("span", { class: "place" }, k.rule),
    bar(k.count / most)))));
}
