// The table of rules.

import { $, breakable, count, duration, el, rate, setText, tag } from "./dom.js";
import { sparkline } from "./chart.js";
import * as address from "./address.js";
import { detail } from "./detail.js";
import { limitsText, setRules } from "./model.js";

const page = 25; // rows at a time
const keep = 60; // seconds of calls for each rule
const recent = 10; // seconds that a rate is the mean of, which rules are sorted by

let rules = [];
let shown = page;
let calls = new Map(); // name -> seconds of [admitted, refused, shadow, undecided]
let everywhere = new Map(); // name -> calls a second in all processes, if there are several
let waits = new Map(); // name -> what its calls wait for now
let rows = new Map(); // rule -> its row
let sorted = 0;
let context = { actions: [] };

const id = (rule) => `${rule.name}\n${rule.source}\n${rule.copy ?? 0}`;

// setContext makes the rows anew if there are other actions. A reconnect leaves them.
export function setContext(c) {
  if (JSON.stringify(c) === JSON.stringify(context)) return;
  context = c;
  rows = new Map();
  draw(true);
}

// replace shows other rules, update some changed ones. Rules that were there keep
// their places until they are sorted.
export function replace(list) {
  const place = new Map(rules.map((r, i) => [id(r), i]));
  rules = list.map((r, i) => [place.get(id(r)) ?? place.size + i, r]).sort((a, b) => a[0] - b[0]).map(([, r]) => r);
  setRules(rules);
  draw(place.size === 0);
}

export function update(changed) {
  const byId = new Map(changed.map((r) => [id(r), r]));
  rules = rules.map((r) => byId.get(id(r)) ?? r);
  setRules(rules);
  draw(false);
}

// refresh draws open rows anew: what the editor knows of them has changed.
export function refresh() {
  for (const row of rows.values()) if (row.open) row.stale();
  draw(false);
}

// add takes a second of calls in.
export function add(list, seconds) {
  const now = new Map(list.map((r) => [r.name, r.n.map((n) => n / seconds)]));
  waits = new Map(list.filter((r) => r.waiting || r.held_ms).map((r) => [r.name, waitText(r)]));
  for (const name of now.keys()) if (!calls.has(name)) calls.set(name, []);
  for (const [name, past] of calls) {
    past.push(now.get(name) ?? [0, 0, 0, 0]);
    if (past.length > keep) past.shift();
    if (past.every((s) => s.every((n) => n === 0))) calls.delete(name);
  }
  draw(false);
}

// setAll takes what all processes have told.
export function setAll({ processes, rules: told }) {
  everywhere = new Map(processes > 1 ? (told ?? []).map((r) => [r.rule, r.decided]) : []);
  draw(false);
}

function mean(name, column, seconds) {
  const past = (calls.get(name) ?? []).slice(-seconds);
  return past.length === 0 ? 0 : past.reduce((sum, s) => sum + s[column], 0) / past.length;
}

const refused = (rule, seconds) => mean(rule.name, 1, seconds) + mean(rule.name, 2, seconds);

function matches(rule) {
  const text = $("filter").value.trim().toLowerCase();
  if (text && !rule.name.toLowerCase().includes(text) && !rule.source.toLowerCase().includes(text)) return false;
  switch ($("show").value) {
    case "refused": return refused(rule, recent) > 0;
    case "undecided": return mean(rule.name, 3, recent) > 0;
    case "changed": return rule.overridden || rule.overridden_keys > 0 || rule.factor !== 1;
    case "shadow": return rule.mode === "shadow" || !rule.enabled;
  }
  return true;
}

// order sorts rules by who refuses most. It does not while the pointer or the
// keyboard is in the table, so that nothing moves under a finger.
function order(force) {
  const table = $("rule-rows");
  const busy = table.matches(":hover") || table.contains(document.activeElement);
  if (!force && (busy || Date.now() - sorted < 5000)) return false;
  sorted = Date.now();
  const weight = new Map(rules.map((r) => [r, [1, 3, 2, 0].map((column) => mean(r.name, column, recent))]));
  rules.sort((a, b) => {
    const [x, y] = [weight.get(a), weight.get(b)];
    const at = x.findIndex((n, i) => n !== y[i]);
    return at < 0 ? a.name.localeCompare(b.name) : y[at] - x[at];
  });
  return true;
}

function draw(force) {
  order(force);
  const fit = rules.filter(matches);
  const visible = fit.slice(0, shown);
  const body = $("rule-rows");
  const elements = visible.flatMap((rule) => {
    const row = rows.get(id(rule)) ?? newRow(rule);
    rows.set(id(rule), row);
    row.draw(rule);
    return row.elements();
  });
  if (elements.length !== body.children.length || elements.some((e, i) => body.children[i] !== e)) arrange(body, elements);
  const keepRows = new Set(visible.map(id));
  for (const key of rows.keys()) if (!keepRows.has(key) && !rows.get(key).open) rows.delete(key);
  foot(fit.length);
}

// arrange puts rows into the table. The one that has the focus is not moved, for it
// would lose it.
function arrange(body, elements) {
  const held = elements.findIndex((e) => e.contains(document.activeElement));
  if (held < 0) {
    body.replaceChildren(...elements);
    return;
  }
  const stay = new Set(elements);
  for (const e of [...body.children]) if (!stay.has(e)) e.remove();
  elements.slice(0, held).forEach((e) => body.insertBefore(e, elements[held]));
  elements.slice(held + 1).forEach((e) => body.append(e));
}

function foot(n) {
  const e = $("rules-foot");
  e.hidden = n > 0 && n <= shown;
  if (n === 0) setText(e, rules.length === 0 ? "No rule is registered yet. Generated constructors register theirs." : "No rule fits the filter.");
  else if (n > shown) {
    const text = `${count(shown)} of ${count(n)} rules. `;
    if (e.firstChild?.textContent !== text) {
      e.replaceChildren(text, el("button", { class: "plain", type: "button", onclick: () => { shown += page; draw(true); } }, "Show more"));
    }
  }
}

function newRow(rule) {
  const spark = sparkline();
  const cells = { limit: el("div", { class: "limit" }), wait: el("div", { class: "place" }), tags: el("div", { class: "tags" }), ok: rateCell("admitted"), no: rateCell("refused"), un: rateCell("undecided") };
  const more = detail(rule, context);
  const name = el("button", { class: "name", type: "button", "aria-expanded": "false", onclick: () => {
    row.toggle();
    address.write({ open: row.open ? rule.name : null });
    draw(false);
  } }, breakable(rule.name));
  const main = el("tr", {},
    el("td", {}, name, el("div", { class: "place" }, [rule.source, rule.algorithm, rule.copy && `limiter ${rule.copy + 1}`].filter(Boolean).join(" · "))),
    el("td", {}, cells.limit, cells.tags, cells.wait), cells.ok, cells.no, cells.un, el("td", { class: "spark" }, spark.element));
  let drawn = "";
  const row = {
    open: false,
    stale() { drawn = ""; },
    toggle() {
      row.open = !row.open;
      row.stale(); // the editor may know more by now
      name.setAttribute("aria-expanded", String(row.open));
      main.classList.toggle("open", row.open);
    },
    elements: () => (row.open ? [main, more.element] : [main]),
    draw(now) {
      const limits = limitsText(now);
      const text = JSON.stringify(now) + limits;
      if (text !== drawn) {
        setText(cells.limit, limits);
        cells.tags.replaceChildren(...tagsOf(now));
        if (more.draw(now)) drawn = text;
      }
      setText(cells.wait, waits.get(now.name) ?? "");
      const all = everywhere.get(now.name);
      number(cells.ok, mean(now.name, 0, recent), "", all?.[0]);
      number(cells.no, refused(now, recent), now.mode === "shadow" ? "shade" : "hot", all && all[1] + all[2]);
      number(cells.un, mean(now.name, 3, recent), "worry", all?.[3]);
      spark.draw((calls.get(now.name) ?? []).map((s) => [s[0], s[1] + s[2], s[3]]), now.mode);
    },
  };
  return row;
}

function waitText({ waiting: n, held_ms: held }) {
  const calls = n && (n === 1 ? "1 call waits" : `${count(n)} calls wait`);
  return [held && `held back for ${duration(held)}`, calls].filter(Boolean).join(", ");
}

const rateCell = (what) => el("td", { class: "number", "data-label": `${what} /s` }, el("span", {}), el("small", {}));

// number shows a rate of this process, and that of all if there are several.
function number(cell, n, hot, all) {
  setText(cell.firstChild, rate(n));
  setText(cell.lastChild, all ? `all ${rate(all)}` : "");
  cell.className = `number ${n === 0 && !all ? "zero" : hot}`;
}

function tagsOf(rule) {
  const tags = [];
  if (!rule.enabled) tags.push(tag("off", "off"));
  if (rule.mode === "shadow") tags.push(tag("shadow", "shadow"));
  if (rule.factor !== 1) tags.push(tag("adaptive", `adaptive × ${Number(rule.factor.toFixed(2))}`));
  if (rule.overridden) tags.push(tag("override", "override"));
  if (rule.overridden_keys > 0) tags.push(tag("override", rule.overridden_keys === 1 ? "1 key" : `${count(rule.overridden_keys)} keys`));
  if (rule.origin === "directive") tags.push(tag("directive", "directive"));
  if (!rule.called) tags.push(tag("idle", "not called yet"));
  if (rule.origin === "call") tags.push(tag("call", "max of each call"));
  return tags;
}

// restore shows what an address says: a filter, and a rule that is open.
export function restore({ filter, show, open }) {
  $("filter").value = filter ?? open ?? "";
  if (show) $("show").value = show;
  shown = page;
  draw(true);
  const rule = rules.find((r) => r.name === open);
  const row = rule && rows.get(id(rule));
  if (!row || row.open) return;
  row.toggle();
  draw(false);
}

function choose() {
  address.write({ filter: $("filter").value || null, show: $("show").value === "all" ? null : $("show").value });
  shown = page;
  draw(true);
}

$("filter").addEventListener("input", choose);
$("show").addEventListener("change", choose);
$("filters").addEventListener("submit", (e) => e.preventDefault());
