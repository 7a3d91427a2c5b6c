// What viewers change: each action is asked about first where it refuses calls or forgets
// counts, and what came of it is told.

import { confirmed, notice, parseDuration } from "./dom.js";
import { act } from "./api.js";

let after = () => {};

// onDone sets what is called after each action that was done.
export function onDone(f) { after = f; }

// holds adds to an action how long it is to hold, and reports whether that makes sense.
// Nothing leaves an end as it is.
export function holds(action, text) {
  if (text.trim() === "") return true;
  if (text.trim() === "ever") action.endless = true;
  else action.for_ms = parseDuration(text);
  if (action.for_ms !== null) return true;
  notice(`For is a number and a unit, such as 2h or 30m, or ever: not ${text}`, true);
  return false;
}

// question is what is asked before an action, or nothing.
function question({ action, rule, key, max }) {
  switch (action) {
    case "reset": return `Forget what ${key || "the key"} has used of ${rule}? That cannot be undone.`;
    case "block": return `Refuse all calls of ${key || "the key"} to ${rule}?`;
    case "shadow_on": return `Refuse nobody by ${rule}?`;
  }
  return max === 0 ? `Refuse all calls${key === undefined ? "" : ` of ${key || "the key"}`} to ${rule}?` : "";
}

// run asks for an action and tells what came of it.
export async function run(action) {
  const asks = question(action);
  if (asks && !(await confirmed(asks))) return false;
  try {
    const { done } = await act(action);
    notice(`${action.rule}: ${done}.`);
    after();
    return true;
  } catch (err) {
    notice(err.message, true);
    return false;
  }
}
