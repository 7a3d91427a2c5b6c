// Overrides in force, and their history.

import { $, clock, count, el, setText, tag } from "./dom.js";
import { limitText } from "./rules.js";

let drawn = "";

// setRules shows which rules are not as declared.
export function setRules(rules) {
  const changed = rules.filter((r) => r.overridden || r.overridden_keys > 0).sort((a, b) => a.name.localeCompare(b.name));
  const text = JSON.stringify(changed);
  if (text === drawn) return;
  drawn = text;
  setText($("overrides-summary"), changed.length === 0 ? "" : `${count(changed.length)} in force`);
  if (changed.length === 0) {
    $("overrides").replaceChildren(el("p", { class: "empty" }, "All rules are as declared."));
    return;
  }
  $("overrides").replaceChildren(el("ul", { class: "list" }, ...changed.slice(0, 50).map((r) => el("li", {},
    el("div", {}, el("code", {}, r.name), el("div", { class: "tags" },
      !r.enabled && tag("off", "off"), r.mode === "shadow" && tag("shadow", "shadow"),
      r.overridden_keys > 0 && tag("override", `${count(r.overridden_keys)} ${r.overridden_keys === 1 ? "key" : "keys"}`))),
    r.overridden && el("span", { class: "limit" }, limitText(r))))));
}

export function setHistory(entries) {
  if (entries.length === 0) {
    $("history").replaceChildren(el("li", {}, el("span", { class: "quiet" }, "–"), "Nothing was changed since the program started."));
    return;
  }
  $("history").replaceChildren(...entries.map((e) => el("li", {}, el("time", { datetime: e.at }, clock(e.at)), el("span", {}, ...say(e)))));
}

function say(e) {
  if (e.error) return [el("span", { class: "bad" }, "Rejected: "), e.error];
  const parts = [];
  if (e.rule) parts.push(el("code", {}, e.rule), " ");
  if (e.note) parts.push(e.note);
  else if (!e.after) parts.push("as declared again");
  else parts.push(e.before ? `${e.before} → ${e.after}` : e.after);
  if (e.by) parts.push(el("span", { class: "quiet" }, `, by ${e.by}`));
  return parts;
}
