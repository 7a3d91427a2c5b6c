// What is below a rule when it is opened: facts, and actions where the page has
// them.

import { count, duration, el, notice, parseDuration } from "./dom.js";
import { act } from "./api.js";
import { ask } from "./lookup.js";

const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));

export function detail(rule, context) {
  const box = el("div", { class: "box" });
  const element = el("tr", { class: "detail" }, el("td", { colspan: "5" }, box));
  const offers = (name) => context.actions.includes(name);
  return {
    element,
    draw(now) {
      if (box.contains(document.activeElement)) return; // somebody is typing
      box.replaceChildren(facts(now), el("div", { class: "row" }, ...buttons(now, offers)));
      if (offers("override")) box.append(form(now));
    },
  };
}

function facts(rule) {
  const list = el("dl", { class: "facts" },
    fact("Declared", rule.declared.max === 0 ? `max of each call, in ${duration(rule.declared.window_ms)}` : `${count(rule.declared.max)} per ${duration(rule.declared.window_ms)}`),
    fact("Algorithm", rule.algorithm),
    fact("When the store is away", rule.fail === "default" ? "as the limiter says" : rule.fail));
  if (rule.burst) list.append(fact("Burst", count(rule.burst)));
  if (rule.block_ms) list.append(fact("Block", duration(rule.block_ms)));
  if (rule.wait_ms) list.append(fact("Wait", duration(rule.wait_ms)));
  if (rule.factor !== 1) list.append(fact("Factor", String(Number(rule.factor.toFixed(3)))));
  return list;
}

function buttons(rule, offers) {
  const list = [el("button", { type: "button", onclick: () => ask(rule.name) }, "Look up a key")];
  const action = (kind, text) => offers(kind) && list.push(el("button", { type: "button", onclick: () => run({ action: kind, rule: rule.name }) }, text));
  if (rule.mode === "shadow") action("shadow_off", "Refuse calls again");
  else action("shadow_on", "Shadow mode: refuse nobody");
  if (rule.overridden) action("restore", "Remove the override");
  return list;
}

function form(rule) {
  const max = el("input", { name: "max", inputmode: "numeric", pattern: "[0-9]*", value: String(rule.max), "aria-label": `Max of ${rule.name}` });
  const window = el("input", { name: "window", value: duration(rule.window_ms), "aria-label": `Window of ${rule.name}` });
  return el("form", { class: "row", onsubmit: (e) => {
    e.preventDefault();
    const ms = parseDuration(window.value);
    if (ms === null) return notice(`A window is a number and a unit, such as 10s or 1m30s: not ${window.value}`, true);
    if (!/^\d+$/.test(max.value.trim())) return notice(`A max is a whole number: not ${max.value}`, true);
    document.activeElement.blur();
    return run({ action: "override", rule: rule.name, max: Number(max.value), window_ms: ms });
  } }, el("label", {}, "Max", max), el("label", {}, "Window", window), el("button", { type: "submit" }, "Override"));
}

// run asks for an action and tells what came of it.
export async function run(action) {
  try {
    const { done } = await act(action);
    notice(`${action.rule}: ${done}.`);
    return true;
  } catch (err) {
    notice(err.message, true);
    return false;
  }
}
