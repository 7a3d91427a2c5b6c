// What is declared and does not hold, the worst first, with what to do; and what has ended.

import { $, clock, count, el, setText } from "./dom.js";

let view = { findings: [] };
let drawn = "";

// trouble is how much does not hold, in words, and whether limits do not hold; or nothing.
export function trouble() {
  const n = view.findings.length + (view.more ?? 0);
  return n === 0 ? null : { text: `${count(n)} ${n === 1 ? "kind of finding" : "kinds of findings"}`, severe: view.findings.some((f) => f.severe) };
}

export function set(v) {
  view = v;
  if (JSON.stringify(v) === drawn) return;
  drawn = JSON.stringify(v);
  const ended = v.ended ?? [];
  $("findings").hidden = v.findings.length + ended.length === 0;
  setText($("findings-more"), v.more ? `and ${v.more} more kinds` : "");
  const all = () => [...document.querySelectorAll("#findings details")];
  const open = new Set(all().filter((d) => d.open).map((d) => d.dataset.code));
  const focused = all().find((d) => d.contains(document.activeElement))?.dataset.code;
  $("findings-list").replaceChildren(...v.findings.map((f) => row(f, open)));
  if (v.findings.length === 0) $("findings-list").append(el("li", {}, "All that is declared is in force."));
  if (ended.length > 0) {
    $("findings-list").append(el("li", {}, el("details", { "data-code": "ended", open: open.has("ended") },
      el("summary", {}, el("span", {}, `Ended: ${ended.map((f) => f.code).join(", ")}`)), el("ul", { class: "list" }, ...ended.map((f) => row(f, open))))));
  }
  all().find((d) => d.dataset.code === focused)?.querySelector("summary").focus();
}

function row(f, open) {
  const code = f.until ? `${f.code} ended` : f.code;
  const about = f.first ? ` ${f.first.slice(0, 3).join(", ")}${f.count > 3 ? ` and ${count(f.count - 3)} more` : ""}` : "";
  const share = f.share ? `${f.share < 0.01 ? "< 1" : Math.round(100 * f.share)} % of calls` : "";
  return el("li", {}, el("details", { "data-code": code, open: open.has(code) },
    el("summary", {},
      el("span", { class: f.severe && !f.until ? "bad" : null }, el("code", {}, f.code), `${about}: ${f.text}`),
      el("span", { class: "when" }, [share, f.until ? `${clock(f.since)} to ${clock(f.until)}` : `since ${clock(f.since)}`].filter(Boolean).join(", "))),
    el("p", {}, `${f.text[0].toUpperCase()}${f.text.slice(1)}. `, el("span", { class: "quiet" }, `${f.help[0].toUpperCase()}${f.help.slice(1)}.`))));
}
