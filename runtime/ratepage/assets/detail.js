// What is below a rule when it is opened: facts, and actions where the page has
// them.

import { count, duration, el, notice, parseDuration } from "./dom.js";
import { holds, run } from "./actions.js";
import { ask } from "./lookup.js";
import { endsOf } from "./model.js";

const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));

export function detail(rule, context) {
  const box = el("div", { class: "box" });
  const element = el("tr", { class: "detail" }, el("td", { colspan: "6" }, box));
  const offers = (name) => context.actions.includes(name);
  return {
    element,
    // draw reports whether it has drawn: not while somebody is typing.
    draw(now) {
      const focused = box.contains(document.activeElement);
      if (focused && document.activeElement.tagName === "INPUT") return false;
      box.replaceChildren(facts(now), el("div", { class: "row" }, ...buttons(now, offers)));
      if (offers("override")) box.append(form(now));
      if (focused) box.querySelector("button").focus();
      return true;
    },
  };
}

function facts(rule) {
  const list = el("dl", { class: "facts" },
    fact("Declared", rule.declared.max === 0 ? `max of each call, in ${rule.period || duration(rule.declared.window_ms)}` : `${count(rule.declared.max)} per ${rule.period || duration(rule.declared.window_ms)}`),
    fact("Algorithm", rule.algorithm),
    fact("When the store is away", rule.fail === "default" ? "as the limiter says" : rule.fail));
  if (rule.burst) list.append(fact("Burst", count(rule.burst)));
  if (rule.block_ms) list.append(fact("Block", duration(rule.block_ms)));
  if (rule.wait_ms) list.append(fact("Wait", duration(rule.wait_ms)));
  const ends = endsOf(rule.name);
  if (ends) list.append(fact("Override", ends));
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

// ownMax is the max that an override replaces: without the factor of the load, and
// null if each call brings its own.
function ownMax(rule) {
  if (rule.origin === "call") return null;
  if (rule.overridden) return Math.round(rule.max / rule.factor);
  return rule.declared.max;
}

// form asks for the fields of an override. Those that are left as they are do not
// become part of it.
function form(rule) {
  const before = { max: ownMax(rule) === null ? "" : String(ownMax(rule)), window: duration(rule.window_ms) };
  const max = el("input", { name: "max", inputmode: "numeric", value: before.max, placeholder: "of each call", "aria-label": `Max of ${rule.name}` });
  const burst = el("input", { name: "burst", inputmode: "numeric", value: String(rule.burst ?? ""), "aria-label": `Burst of ${rule.name}` });
  const window = el("input", { name: "window", value: before.window, "aria-label": `Window of ${rule.name}` });
  const hold = el("input", { name: "for", placeholder: endsOf(rule.name) ? "as it is" : "no end", "aria-label": `How long the override of ${rule.name} holds` });
  const why = el("input", { name: "why", maxlength: "200", "aria-label": `Why ${rule.name} is overridden` });
  return el("form", { class: "row", onsubmit: (e) => {
    e.preventDefault();
    const action = { action: "override", rule: rule.name };
    if (max.value !== before.max) {
      if (!/^\d+$/.test(max.value.trim())) return notice(`A max is a whole number: not ${max.value}`, true);
      action.max = Number(max.value);
    }
    if (burst.value !== String(rule.burst ?? "")) {
      if (!/^\d+$/.test(burst.value.trim())) return notice(`A burst is a whole number: not ${burst.value}`, true);
      action.burst = Number(burst.value);
    }
    if (window.value !== before.window) {
      action.window_ms = parseDuration(window.value);
      if (action.window_ms === null) return notice(`A window is a number and a unit, such as 10s or 1m30s: not ${window.value}`, true);
    }
    if (!holds(action, hold.value)) return;
    if (action.max === undefined && action.burst === undefined && action.window_ms === undefined) return notice("Nothing is to be changed: write another max or window.", true);
    if (why.value.trim()) action.why = why.value.trim();
    document.activeElement.blur();
    return run(action);
  } }, el("label", {}, "Max", max), rule.burst && el("label", {}, "Burst", burst), el("label", {}, "Window", window), el("label", {}, "For", hold), el("label", {}, "Why", why), el("button", { type: "submit" }, "Override"));
}
