// The page: it follows the stream, and hands what arrives to its parts.

import { $, count, setText } from "./dom.js";
import { get } from "./api.js";
import * as address from "./address.js";
import * as actions from "./actions.js";
import { all } from "./model.js";
import * as tiles from "./tiles.js";
import * as rules from "./rules.js";
import * as lookup from "./lookup.js";
import * as store from "./store.js";
import * as refused from "./refused.js";
import * as processes from "./processes.js";
import * as overrides from "./overrides.js";
import * as findings from "./findings.js";
import * as undecided from "./undecided.js";

let version = -1; // of the rules that are shown
let keys = "off";
let made = 0; // which process has answered
let host = "";
let applied = -1; // how often overrides have come into force
let polling = null; // a timer, while the server refuses the stream
let restored = false; // what the address says
let off = false; // all limits are

function link(state, text) {
  $("link").dataset.state = state;
  setText($("link-text"), text);
}

function setRules(answer) {
  version = answer.version;
  rules.replace(answer.rules ?? []);
  overrides.drawRules();
  overrides.load();
  summary();
  if (!restored) restore();
}

// restore shows what the address says.
function restore() {
  restored = true;
  rules.restore(address.read());
  lookup.restore(address.read());
  tiles.restore(address.read());
}

function summary() {
  const n = all().length;
  setText($("summary"), `${n === 1 ? "1 rule" : `${count(n)} rules`}. Rates and charts are those of one process${host ? ` on ${host}` : ""}; look-ups and overrides are for all.`);
}

function apply(frame) {
  const banner = $("banner");
  off = !frame.enabled;
  banner.hidden = frame.enabled;
  setText(banner, frame.enabled ? "" : "All limits are switched off: calls go on uncounted.");
  if (frame.changed && frame.version === version + 1) {
    version = frame.version;
    rules.update(frame.changed);
    overrides.drawRules();
    overrides.load();
  }
  if (frame.findings) {
    findings.set(frame.findings);
    overrides.setRejected(frame.findings.findings);
  }
  if (frame.undecided) undecided.set(frame.undecided);
  if (frame.redis) store.set(frame.redis);
  if (frame.history) overrides.setHistory(frame.history);
  if (frame.history || frame.applied !== applied) {
    applied = frame.applied;
    overrides.load();
    lookup.refresh();
  }
  if (frame.refused_keys) refused.set(frame.refused_keys, keys);
}

function begin(state) {
  keys = state.keys;
  host = state.host;
  rules.setContext({ actions: state.actions });
  lookup.setContext({ actions: state.actions });
  overrides.setContext({ actions: state.actions });
  const same = state.made === made;
  if (!same) version = -1; // not the process of before
  made = state.made;
  tiles.reset(state, same);
  apply(state);
  store.draw();
}

function live() {
  clearTimeout(polling);
  polling = null;
  const found = findings.trouble();
  const wrong = [off && "all limits are switched off", undecided.summary() || store.trouble()].filter(Boolean);
  const all = [...wrong, found?.text, processes.trouble()].filter(Boolean);
  if (all.length === 0) link("live", "Live");
  else link(wrong.length > 0 || found?.severe ? "lost" : "doubt", `Live: ${all.join("; ")}`);
}

let following = null; // the stream
let asking = null; // a timer: what processes have told changes without a frame

function ask() {
  processes.load(keys);
  refused.load();
}

function leave() {
  clearTimeout(polling);
  clearInterval(asking);
  following?.close();
  following = null;
}

function follow() {
  leave();
  ask();
  asking = setInterval(ask, 5000);
  const stream = (following = new EventSource("api/stream"));
  stream.addEventListener("state", (e) => {
    begin(JSON.parse(e.data));
    live();
  });
  stream.addEventListener("rules", (e) => setRules(JSON.parse(e.data)));
  stream.addEventListener("frame", (e) => {
    const frame = JSON.parse(e.data);
    apply(frame);
    if (frame.point) {
      tiles.add(frame.point);
      rules.add(frame.rows ?? [], frame.point.seconds);
    }
    store.draw();
    live();
  });
  stream.addEventListener("error", () => {
    if (stream.readyState !== EventSource.CLOSED) {
      link("lost", "Connection lost, trying again");
      return;
    }
    // The server has refused: perhaps too many look at the page.
    stream.close();
    poll();
    polling = setTimeout(follow, 5000);
  });
}

// poll shows what there is without the stream, and why there is none.
async function poll() {
  try {
    const state = await get("api/state");
    begin(state);
    setRules(await get("api/rules"));
    const full = state.viewers >= state.viewers_max;
    link("lost", full ? `Not live: ${state.viewers_max} others look at this page already. Trying again every 5 seconds` : "Not live: the server refuses the stream");
  } catch (err) {
    link("lost", err.message);
  }
}

actions.onDone(overrides.load);
overrides.onChange(rules.refresh);
processes.onChange(rules.refresh);
addEventListener("hashchange", restore);
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.matches("input, select") || document.querySelector("dialog[open]")) return;
  if (e.key === "?") $("help").showModal();
  if (e.key !== "/") return;
  e.preventDefault();
  $("filter").focus();
});
$("help-close").addEventListener("click", () => $("help").close());

// A hidden page holds no connection: over HTTP/1.1 a browser has six to a server.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") {
    follow();
    return;
  }
  leave();
  link("lost", "Not live while hidden");
});
if (document.visibilityState === "visible") follow();
