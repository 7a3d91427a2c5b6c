// What is declared and does not hold, with what to do.

import { $, clock, el, setText } from "./dom.js";

export function set(view) {
  $("findings").hidden = view.findings.length === 0;
  setText($("findings-more"), view.more ? `and ${view.more} more kinds` : "");
  $("findings-list").replaceChildren(...view.findings.map((f) => el("li", {},
    el("span", {},
      el("code", {}, f.code),
      f.first ? el("span", { class: "place" }, ` ${f.first.slice(0, 3).join(", ")}${f.count > 3 ? ` and ${f.count - 3} more` : ""}`) : null,
      `: ${f.text}. `,
      el("span", { class: "quiet" }, `${f.help}.`)),
    el("span", { class: "when" }, `since ${clock(f.since)}`))));
}
