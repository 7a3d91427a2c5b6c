// What the store has not decided lately, why, and what has become of those calls.

import { $, count, setText } from "./dom.js";

const becomes = { open: "go on uncounted", closed: "are refused", local: "are counted in this process alone" };

let view = { share: null, kinds: [] };

// summary is how much is undecided, in words, or nothing.
export function summary() {
  if (view.kinds.length === 0) return "";
  if (view.share === null) return "some calls are undecided";
  return view.share >= 1 ? "no call is decided" : `${view.share < 0.01 ? "< 1" : Math.round(view.share * 100)} % of calls are undecided`;
}

export function set(v) {
  view = v;
  const text = summary();
  $("undecided").hidden = text === "";
  if (text === "") return;
  const kinds = view.kinds.map((k) => `${k.count ? count(k.count) : "some"} ${becomes[k.policy] ?? k.policy} (${k.class}, fail=${k.policy})`);
  setText($("undecided"), `The store does not decide: ${text}. In the last 10 seconds ${kinds.slice(0, 5).join(", ")}.`);
}
