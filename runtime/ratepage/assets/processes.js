// The processes that report to Redis: in which of them the overrides are in force, what all of them
// decide, and which keys Redis is asked about most.

import { $, bar, breakable, clock, count, el, rate, setText } from "./dom.js";
import { get } from "./api.js";
import { setDiffer } from "./model.js";
import { ask } from "./lookup.js";
import * as rules from "./rules.js";
import * as tiles from "./tiles.js";

let drawn = "";
let said = "";
let changed = () => {};

// onChange sets what is called when rules differ otherwise.
export function onChange(f) { changed = f; }

// trouble is what is wrong with processes, in words, or nothing.
export const trouble = () => said;

export async function load(keys) {
  let view;
  try {
    view = await get("api/processes");
  } catch (err) {
    drawn = "";
    said = "what processes report is not known";
    setText($("processes-summary"), err.message);
    return;
  }
  tiles.setAll(view.calls);
  rules.setAll(view.calls);
  drawHot(view.calls, keys);
  const { calls, ...rest } = view;
  const text = JSON.stringify(rest);
  if (text === drawn) return;
  drawn = text;
  if (setDiffer(view.differ ?? [])) changed();
  const silent = view.machines.reduce((n, m) => n + (m.silent ?? 0), 0);
  said = [
    silent && `${number(silent, "process gives", "processes give")} no sign of life`,
    view.follow > view.in_force && `overrides are not in force in ${number(view.follow - view.in_force, "process", "processes")}`,
    view.differ && `${number(view.differ.length, "rule differs", "rules differ")} among processes`,
  ].filter(Boolean).join(", ");
  $("processes").hidden = view.machines.length === 0;
  setText($("processes-summary"), `${number(view.count, "reports", "report")} to Redis`);
  $("processes-list").replaceChildren(
    ...(view.differ ?? []).map((d) => el("li", {}, el("span", { class: "bad" }, `Rule ${d.rule}: ${d.text}`))),
    ...view.machines.map((m) => el("li", {}, el("span", {}, el("code", {}, m.host), el("span", { class: "quiet" }, m.build ? ` ${m.build}` : ""),
      ...states(m, view.hash).map(([text, bad]) => el("span", { class: bad ? "bad" : "quiet" }, `, ${text}`))),
    el("span", { class: "when" }, clock(m.at)))));
  if (view.more) $("processes-list").append(el("li", { class: "quiet" }, `and ${count(view.more)} more machines`));
  const force = $("in-force");
  force.hidden = !view.hash || view.count === 0;
  force.classList.toggle("bad", view.in_force < view.follow || view.follow === 0);
  setText(force, view.follow === 0
    ? `No process follows ${view.hash}, which this page changes: a change has no effect.`
    : `In force in ${count(view.in_force)} of the ${count(view.follow)} processes that follow the overrides.`);
}

const number = (n, one, more) => `${count(n)} ${n === 1 ? one : more}`;

// states are what there is to say of a machine, and whether that is bad.
function states(m, hash) {
  const others = (m.others ?? []).join(", ");
  return [
    m.count > 0 && [number(m.count, "process", "processes"), false],
    m.silent && [`${number(m.silent, "gives", "give")} no sign of life`, true],
    m.in_force > 0 && [m.in_force === m.count ? "overrides in force" : `overrides in force in ${count(m.in_force)}`, false],
    m.lag && [`other overrides in force in ${count(m.lag)}`, true],
    others && [`others follow ${others}`, Boolean(hash)],
    m.behind_ms && [`its clock is ${count(Math.round(Math.abs(m.behind_ms) / 1000))} s ${m.behind_ms < 0 ? 'ahead of' : 'behind'} that of Redis`, true],
    m.findings && [`${number(m.findings, "finding", "findings")}`, true],
  ].filter(Boolean);
}

let hot = "";

// drawHot shows the keys that Redis is asked about most.
function drawHot(calls, shown) {
  const keys = calls.keys ?? [];
  $("hot-box").hidden = shown === "off" || calls.processes === 0;
  setText($("hot-summary"), `of ${rate(calls.asked)} calls a second that Redis decides`);
  const text = JSON.stringify([shown, keys]);
  if (text === hot) return; // a button in it may have the focus
  hot = text;
  if (keys.length === 0) {
    $("hot").replaceChildren(el("p", { class: "empty" }, "Redis was asked about no key in the last seconds."));
    return;
  }
  $("hot").replaceChildren(el("ol", { class: "refused asked" }, ...keys.map((k) => el("li", {},
    shown === "plain" ? el("button", { class: "name", type: "button", onclick: () => ask(k.rule, k.key) }, k.key || "(no key)") : el("code", {}, k.key || "(no key)"),
    el("span", { class: "count" }, `${rate(k.calls_per_s)} /s`),
    el("span", { class: "place" }, breakable(k.rule), `, ${Math.round(100 * k.share)} % of all${k.remedy && k.share >= 0.1 ? `; what helps: ${k.remedy}` : ""}`),
    bar(k.calls_per_s / keys[0].calls_per_s)))));
}
