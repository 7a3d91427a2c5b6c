// The processes that report to Redis, and in which of them the overrides are in force.

import { $, clock, count, el, setText } from "./dom.js";
import { get } from "./api.js";

let drawn = "";

export async function load() {
  let view;
  try {
    view = await get("api/processes");
  } catch (err) {
    drawn = "";
    setText($("processes-summary"), err.message);
    return;
  }
  if (JSON.stringify(view) === drawn) return;
  drawn = JSON.stringify(view);
  $("processes").hidden = view.count === 0;
  setText($("processes-summary"), `${count(view.count)} ${view.count === 1 ? "reports" : "report"} to Redis`);
  $("processes-list").replaceChildren(...view.processes.map((p) => el("li", {},
    el("span", {}, el("code", {}, p.name), el("span", { class: "quiet" }, p.build ? ` ${p.build}` : ""),
      p.silent ? el("span", { class: "bad" }, " no sign of life") : el("span", { class: p.in_force || !view.hash ? "quiet" : "bad" }, ` ${state(p, view.hash)}`),
      p.behind_ms ? el("span", { class: "bad" }, `, its clock is ${count(Math.round(p.behind_ms / 1000))} s behind that of Redis`) : null,
      p.findings > 0 && el("span", { class: "bad" }, `, ${count(p.findings)} not in force`)),
    el("span", { class: "when" }, clock(p.at)))));
  for (const text of view.differ ?? []) $("processes-list").prepend(el("li", { class: "bad" }, `Rule ${text}`));
  if (view.more) $("processes-list").append(el("li", { class: "quiet" }, `and ${count(view.more)} more`));
  const said = $("in-force");
  said.hidden = !view.hash || view.count === 0;
  said.classList.toggle("bad", view.in_force < view.follow || view.follow === 0);
  setText(said, view.follow === 0
    ? `No process follows ${view.hash}, which this page changes: a change has no effect.`
    : `In force in ${count(view.in_force)} of the ${count(view.follow)} processes that follow the overrides.`);
}

function state(p, hash) {
  if (p.in_force) return "overrides in force";
  if (!p.overrides) return "follows no overrides";
  return p.overrides === hash ? "other overrides in force" : `follows ${p.overrides}`;
}
