// The keys that are refused most: now by this process, or lately by all.

import { $, bar, breakable, clock, count, duration, el, setText } from "./dom.js";
import { get } from "./api.js";
import { ask } from "./lookup.js";

let shown = "off"; // how keys are shown
let now = { keys: [], span_ms: 0 };
let drawn = "";

export function set(view, keys) {
  now = view;
  shown = keys;
  $("refused-since").hidden = keys === "off";
  if ($("refused-since").value === "") draw();
}

function draw() {
  if (shown === "off") {
    setText($("refused-span"), "");
    $("refused").replaceChildren(el("p", { class: "empty" }, "Keys are not counted: the program turns that on by ", el("code", {}, "ratepage.WithKeys"), "."));
    return;
  }
  setText($("refused-span"), `In the last ${duration(now.span_ms)} to ${duration(2 * now.span_ms)}`);
  list(now.keys.slice(0, 10), (k) => (k.margin > 0 ? `≤ ${count(k.count)}` : count(k.count)), () => null);
}

// load shows what all processes have told Redis of the span that was chosen.
export async function load() {
  const since = $("refused-since").value;
  if (since === "" || $("refused-since").hidden) return draw();
  try {
    const view = await get("api/refused", { since });
    if (since !== $("refused-since").value) return;
    setText($("refused-span"), `Processes tell each minute${view.others ? `; ${count(view.others)} refusals of other keys` : ""}`);
    list(view.keys, (k) => count(k.count), (k) => `${clock(k.from)} to ${clock(k.to)}`);
  } catch (err) {
    $("refused").replaceChildren(el("p", { class: "bad" }, err.message));
  }
}

function list(keys, counted, when) {
  const box = $("refused");
  const text = JSON.stringify([shown, $("refused-since").value, keys]);
  if (text === drawn) return; // a button in it may have the focus
  drawn = text;
  if (keys.length === 0) {
    box.replaceChildren(el("p", { class: "empty" }, "No key was refused."));
    return;
  }
  const most = keys[0].count;
  box.replaceChildren(el("ol", { class: "refused" }, ...keys.map((k) => el("li", {},
    shown === "plain" ? el("button", { class: "name", type: "button", onclick: () => ask(k.rule, k.key) }, k.key || "(no key)") : el("code", {}, k.key || "(no key)"),
    el("span", { class: "count" }, counted(k)),
    el("span", { class: "place" }, breakable(k.rule), when(k) && `, ${when(k)}`),
    bar(k.count / most)))));
}

$("refused-since").addEventListener("change", load);
