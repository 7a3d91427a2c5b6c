// What is left for a key.

import { $, bar, breakable, clock, count, duration, el, notice, tag } from "./dom.js";
import { get } from "./api.js";
import * as address from "./address.js";
import { holds, run } from "./actions.js";
import { named, names } from "./model.js";

let context = { actions: [] };
let asked = null; // what the result that is shown is of

export function setContext(c) { context = c; }

// ask puts a rule, and a key if it is known, into the form.
export function ask(rule, key) {
  $("lookup-rule").value = rule;
  $("lookup-key").value = key ?? "";
  showMax();
  $("lookup").scrollIntoView({ block: "center" });
  if (key === undefined) $("lookup-key").focus();
  else if (!$("lookup-max-row").hidden && $("lookup-max").value === "") $("lookup-max").focus();
  else look(typed());
}

// restore looks up what an address says.
export function restore({ rule, key, max }) {
  if (key === undefined) return;
  $("lookup-rule").value = rule ?? "";
  $("lookup-key").value = key;
  showMax();
  if (max !== undefined) $("lookup-max").value = max;
  look(typed());
}

// refresh looks again: what holds for the rules has changed.
export function refresh() {
  if (asked) look(asked);
}

function showMax() {
  const rule = named($("lookup-rule").value);
  $("lookup-max-row").hidden = !rule || rule.declared.max !== 0;
}

function typed() {
  const params = { rule: $("lookup-rule").value, key: $("lookup-key").value };
  if (!$("lookup-max-row").hidden) params.max = $("lookup-max").value;
  return params;
}

// look shows what is left for a key. It leaves the buttons of the same key alone,
// which may have the focus.
async function look(params) {
  const same = asked && JSON.stringify(asked) === JSON.stringify(params);
  const result = $("lookup-result");
  asked = params;
  address.write({ rule: params.rule || null, key: params.key, max: params.max || null });
  try {
    const found = await get("api/keys", params);
    if (asked !== params) return; // something else was asked meanwhile
    const away = found.limits.filter((l) => l.error).slice(1); // the first one says why, for all
    const limits = el("div", {}, ...found.limits.filter((l) => !away.includes(l)).map((l) => resultOf(l, params)));
    if (params.rule === "") {
      if (away.length > 0) limits.append(el("p", { class: "bad result" }, `Nor is it known of ${count(away.length)} other rules.`));
      limits.append(el("p", { class: "quiet result" }, found.others ? `${count(found.others)} other rules have counted nothing for it.` : ""));
      return result.replaceChildren(limits, ...alike(found, params.key));
    }
    if (same && result.children.length === 2) result.firstChild.replaceWith(limits);
    else result.replaceChildren(limits, actionsOf(params, found.limits.some((l) => l.shares_total > 0)));
  } catch (err) {
    if (asked === params) result.replaceChildren(el("p", { class: "bad" }, err.message));
  }
}

// alike shows what has a key in its name: rules, and keys that were refused lately or that an override is for.
function alike({ rules = [], keys = [], more = 0, unread }, key) {
  const link = (text, act) => el("button", { type: "button", class: "name", onclick: act }, text);
  const open = (k) => (k.key.includes("•") ? el("code", {}, k.key) : link(k.key, () => ask(k.rule, k.key)));
  const list = (title, all) => all.length > 0 && el("div", { class: "result" }, el("h3", {}, title), el("ol", { class: "refused" }, ...all));
  return [
    list(`Other keys with ${key}`, keys.map((k) => el("li", {}, open(k), el("span", { class: "count" }, k.refused ? `refused ${count(k.refused.refused)}` : ""),
      el("span", { class: "place" }, breakable(k.rule), `: ${k.state}${k.overrides.length > 0 ? ", overridden" : ""}`)))),
    list(`Rules with ${key}`, rules.map((r) => el("li", {}, link(r, () => ask(r))))),
    el("p", { class: "quiet result" }, unread ? `Not all is known: ${unread}. ` : more ? `And ${count(more)} more keys. ` : "",
      "Searched are keys that were refused in the last day, or that an override is for: ratectl find looks at all."),
  ].filter(Boolean);
}

function resultOf(limit, { rule, key }) {
  const box = el("div", { class: "result" });
  if (rule === "") box.append(el("button", { type: "button", class: "plain", onclick: () => ask(limit.rule, key) }, breakable(limit.rule)));
  if (limit.error) {
    box.append(el("p", { class: "verdict", "data-bad": true }, `Not known: ${limit.error}`));
    return box;
  }
  const [text, bad] = verdict(limit);
  const known = limit.limit !== null; // or each call brings its own
  box.append(el("p", { class: "verdict", "data-bad": bad }, text));
  if (limit.state === "off" || limit.state === "broken") return box;
  if (known) box.append(bar(limit.limit ? limit.used / limit.limit : 1, bad));
  const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  box.append(el("dl", { class: "facts" },
    fact("Key", el("code", {}, key === "" ? "(none)" : key)),
    limit.state !== "held" && fact("Used", `${count(limit.used)}${known ? ` of ${count(limit.limit)}` : ""} in ${/^\d/.test(limit.window) ? limit.window : `a ${limit.window}`}`),
    limit.past && fact(`Used in the last ${limit.past.length === 1 ? limit.window : `${limit.past.length} ${limit.window}s`}`, limit.past.map((p) => count(p.used)).join(", ")),
    known && fact("Remaining", count(limit.remaining)),
    limit.differs && fact("Processes have", limit.differs),
    !limit.permits && fact("Resets", limit.reset_after_ms > 0 ? `in ${duration(limit.reset_after_ms)}` : "nothing used"),
    ...(limit.held_by ?? []).map((h) => fact("Permits held", `${count(h.permits)} by ${h.process}${h.build ? ` ${h.build}` : ""} since ${clock(h.since)}${h.silent ? ", which gives no sign of life: they lapse" : ""}`)),
    ...(limit.shares ?? []).map((s) => fact(`Share ${s.name}`, `${s.used_by_weight.toPrecision(3)} used by weight${s.blocked_for_ms ? `, blocked for ${duration(s.blocked_for_ms)}` : ""}`)),
    limit.shares_total > (limit.shares ?? []).length && fact("More shares", count(limit.shares_total - limit.shares.length)),
    limit.retry_after_ms !== 0 && fact("Next call", limit.permits && limit.state === "refused" ? "when a call ends" : limit.retry_after_ms === null ? "never" : `in ${duration(limit.retry_after_ms)}, at ${clock(Date.now() + limit.retry_after_ms)}`)));
  if (limit.shadow) box.append(el("div", { class: "tags" }, tag("shadow", "shadow: refuses nobody")));
  return box;
}

function verdict(limit) {
  if (limit.state === "off") return ["No limit counts this key: it is switched off.", null];
  if (limit.state === "unknown") return ["Not known: each call brings its max", null];
  if (limit.state === "broken") return ["Not known: another program has written this key, and a reset removes it", true];
  if (limit.state === "ok" || limit.state === "near") return ["The next call is admitted", null];
  if (limit.shadow) return ["Over its limit, and admitted: the rule is in shadow mode", null];
  if (limit.state === "held") return ["Held back, since the peer has asked for it", true];
  if (limit.state === "refused") return ["The next call is refused", true];
  return limit.retry_after_ms === null ? ["Never admitted: blocked by an override", true] : ["Blocked by the rule, since it was refused", true];
}

function actionsOf({ rule, key }, divided) {
  const hold = el("input", { name: "for", placeholder: "no end", "aria-label": "How long it holds" });
  const max = el("input", { name: "max", inputmode: "numeric", "aria-label": "Max of this key" });
  const share = el("input", { name: "share", "aria-label": "Share" });
  const weight = el("input", { name: "weight", inputmode: "numeric", "aria-label": "Weight of the share" });
  const why = el("input", { name: "why", maxlength: "200", "aria-label": "Why" });
  const button = (kind, text, danger) => context.actions.includes(kind) && el("button", { type: "button", class: danger && "danger", onclick: async () => {
    const action = { action: kind, rule, key };
    if (why.value.trim()) action.why = why.value.trim();
    if (kind === "override_key") {
      if (!/^\d+$/.test(max.value.trim())) return notice(`A max is a whole number: not ${max.value}`, true);
      action.max = Number(max.value);
    }
    if (["weigh", "unweigh"].includes(kind)) action.key = share.value;
    if (kind === "weigh") {
      if (!/^\d+$/.test(weight.value.trim())) return notice(`A weight is a whole number: not ${weight.value}`, true);
      action.weight = Number(weight.value);
    }
    if (["block", "allow", "override_key", "weigh"].includes(kind) && !holds(action, hold.value)) return;
    if (await run(action)) {
      hold.value = max.value = weight.value = why.value = "";
      refresh();
    }
  } }, text);
  return el("div", { class: "row result" },
    button("reset", "Reset"), named(rule)?.hold && button("release", "Release"), button("block", "Block", true), button("unblock", "Unblock"), button("allow", "Allow"), button("unallow", "Remove allowance"),
    button("restore_key", "Remove override"),
    context.actions.includes("override_key") && el("label", {}, "Max", max), button("override_key", "Set max"),
    divided && context.actions.includes("weigh") && el("span", {}, el("label", {}, "Share", share), el("label", {}, "Weight", weight)), divided && button("weigh", "Set weight"), divided && button("unweigh", "Remove weight"),
    context.actions.includes("block") && el("label", {}, "For", hold),
    context.actions.includes("reset") && el("label", {}, "Why", why));
}

$("lookup").addEventListener("submit", (e) => {
  e.preventDefault();
  look(typed());
});
$("lookup-rule").addEventListener("input", () => {
  showMax();
  offer();
});
$("lookup-rule").addEventListener("focus", offer);

// offer puts names that fit what is typed into the list below the field.
function offer() {
  const part = $("lookup-rule").value.toLowerCase();
  const fit = [...new Set(names())].filter((n) => n.toLowerCase().includes(part)).slice(0, 50).sort();
  $("rule-names").replaceChildren(...fit.map((n) => el("option", { value: n })));
}
