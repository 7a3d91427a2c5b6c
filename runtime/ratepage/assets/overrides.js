// Overrides in force, and their history.

import { $, breakable, clock, count, el, notice, setText, tag } from "./dom.js";
import { act, get } from "./api.js";
import { all, ends, limitText, setEntries } from "./model.js";

let drawn = "";
let rejected = ""; // why none of them come into force
let context = { actions: [] };
let says = { entries: [], history: [] }; // what the editor knows
let changed = () => {};

// onChange sets what is called when the overrides say something else.
export function onChange(f) { changed = f; }
let loading = false;
let again = false; // something has changed while a request was under way

export function setContext(c) { context = c; }

// load asks what the editor knows, after each change.
export async function load() {
  if (!context.actions.includes("undo")) return;
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  try {
    const now = await get("api/overrides");
    if (JSON.stringify(now) !== JSON.stringify(says)) {
      says = now;
      setEntries(says.entries);
      changed();
    }
    draw();
  } catch (err) {
    failed(err.message);
  } finally {
    loading = false;
  }
  if (again) {
    again = false;
    setTimeout(load, 1000);
  }
}

// failed says in place of the overrides why they are not known.
function failed(why) {
  $("entries-box").hidden = false;
  $("entries").replaceChildren(el("li", {}, el("span", { class: "bad" }, why)));
}

function draw() {
  $("entries-box").hidden = false;
  const entries = says.entries.filter((e) => !e.ended);
  $("entries").replaceChildren(...(entries.length === 0 ? [el("li", {}, "There are none.")] : entries.map((e) => el("li", {},
    el("div", {}, el("code", {}, breakable(e.rule)), e.pattern !== null && el("span", { class: "key" }, e.shares ? " share " : " ", el("code", {}, e.pattern || "(no key)"))),
    el("span", { class: "says" }, el("code", {}, written(e.says)), el("span", { class: "quiet" }, ends(e) && ` ${ends(e)}`, e.at && `, by ${e.who || "somebody"}${e.why ? `: ${e.why}` : ""}`))))));
  if (says.error) failed(says.error);
  if (says.more) $("entries").append(el("li", { class: "quiet" }, `and ${count(says.more)} more`));
  const undone = new Set(says.history.map((h) => h.undoes));
  $("changes").replaceChildren(...(says.history.length === 0 ? [el("li", {}, "There are none.")] : says.history.map((h) => el("li", {},
    el("time", { datetime: h.at }, clock(h.at)),
    el("span", {}, el("code", {}, breakable(h.rule)), h.pattern !== null && el("code", {}, `${h.shares ? " share" : ""} ${h.pattern || "(no key)"}`),
      h.did ? ` ${h.did}${h.before === null ? "" : `; it was: ${written(h.before)}`}` : h.several ? ` ${h.several} overrides` : ` ${written(h.before)} → ${written(h.after)}`,
      el("span", { class: "quiet" }, `${h.undoes ? `, undo of ${h.undoes}` : ""}${h.who ? `, by ${h.who}` : ""}${h.why ? `: ${h.why}` : ""}`)),
    !h.did && !undone.has(h.id) && el("button", { type: "button", class: "plain", "aria-label": `Undo change ${h.id}`, onclick: () => undo(h) }, "Undo")))));
}

// written returns what an override says, as it stands in the hash, or a text.
function written(says) {
  if (says === null) return "nothing";
  return typeof says === "string" ? says : JSON.stringify(says);
}

async function undo(h) {
  try {
    const { done } = await act({ action: "undo", rule: h.rule, change: h.id });
    notice(`${h.rule}: ${done}.`);
  } catch (err) {
    notice(err.message, true);
  }
  load();
}

// setRejected takes from the findings why overrides are not in force.
export function setRejected(findings) {
  rejected = findings.filter((f) => f.code === "overrides_rejected" || f.code === "overrides_unread").map((f) => f.text).join("; ");
  drawRules();
}

// drawRules shows which rules are not as declared.
export function drawRules() {
  const overridden = all().filter((r) => r.overridden || r.overridden_keys > 0).sort((a, b) => a.name.localeCompare(b.name));
  const text = JSON.stringify([overridden, rejected]);
  if (text === drawn) return;
  drawn = text;
  setText($("overrides-summary"), overridden.length === 0 ? "" : `${count(overridden.length)} ${overridden.length === 1 ? "rule" : "rules"} changed`);
  const why = rejected && el("p", { class: "empty bad" }, `${rejected[0].toUpperCase()}${rejected.slice(1)}.`);
  if (overridden.length === 0) {
    $("overrides").replaceChildren(why || el("p", { class: "empty" }, "All rules are as declared."));
    return;
  }
  $("overrides").replaceChildren(...(why ? [why] : []), el("ul", { class: "list" }, ...overridden.slice(0, 50).map((r) => el("li", {},
    el("div", {}, el("code", {}, breakable(r.name)), el("div", { class: "tags" },
      !r.enabled && tag("off", "off"), r.mode === "shadow" && tag("shadow", "shadow"),
      r.overridden_keys > 0 && tag("override", `${count(r.overridden_keys)} ${r.overridden_keys === 1 ? "key or pattern" : "keys or patterns"}`))),
    r.overridden && el("span", { class: "limit" }, limitText(r))))));
  if (overridden.length > 50) $("overrides").append(el("p", { class: "quiet" }, `and ${count(overridden.length - 50)} more`));
}

export function setHistory(entries) {
  if (entries.length === 0) {
    $("history").replaceChildren(el("li", {}, el("span", { class: "quiet" }, "–"), "Nothing was changed since the program started."));
    return;
  }
  $("history").replaceChildren(...entries.map((e) => el("li", {}, el("time", { datetime: e.at }, clock(e.at)), el("span", {}, ...say(e)))));
}

function say(e) {
  if (e.error) return [el("span", { class: "bad" }, e.unread ? "Cannot be read: " : "Rejected: "), e.error];
  const parts = [];
  if (e.rule) parts.push(el("code", {}, breakable(e.rule)), " ");
  if (e.note) parts.push(e.note);
  else if (!e.after) parts.push("as declared again");
  else parts.push(e.before ? `${e.before} → ${e.after}` : e.after);
  if (e.by) parts.push(el("span", { class: "quiet" }, `, by ${e.by}`));
  return parts;
}
