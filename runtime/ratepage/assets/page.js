// The page: it follows the stream, and hands what arrives to its parts.

import { $, count, setText } from "./dom.js";
import { get } from "./api.js";
import * as tiles from "./tiles.js";
import * as rules from "./rules.js";
import * as lookup from "./lookup.js";
import * as store from "./store.js";
import * as overrides from "./overrides.js";

let version = -1; // of the rules that are shown
let loading = null; // their request, if one is under way
let keys = "off";
let made = 0; // which process has answered

function link(state, text) {
  $("link").dataset.state = state;
  setText($("link-text"), text);
}

// load fetches the rules, until their version is at least the one that is wanted.
async function load(wanted) {
  loading ??= (async () => {
    try {
      const answer = await get("api/rules");
      version = answer.version;
      rules.replace(answer.rules ?? []);
      overrides.setRules(rules.all());
      summary();
    } catch (err) {
      link("lost", err.message);
    } finally {
      loading = null;
    }
  })();
  await loading;
  if (version < wanted && $("link").dataset.state === "live") setTimeout(() => load(wanted), 1000);
}

function summary() {
  const n = rules.all().length;
  setText($("summary"), n === 1 ? "1 rule" : `${count(n)} rules`);
}

function apply(frame) {
  const banner = $("banner");
  banner.hidden = frame.enabled;
  setText(banner, frame.enabled ? "" : "All limits are switched off: calls go on uncounted.");
  if (frame.changed && frame.version === version + 1) {
    version = frame.version;
    rules.update(frame.changed);
    overrides.setRules(rules.all());
  } else if (frame.version > version) {
    load(frame.version);
  }
  if (frame.redis) store.set(frame.redis);
  if (frame.history) {
    overrides.setHistory(frame.history);
    lookup.refresh();
  }
  if (frame.denied_keys) store.setDenied(frame.denied_keys, keys);
}

function follow() {
  const stream = new EventSource("api/stream");
  stream.addEventListener("state", (e) => {
    const state = JSON.parse(e.data);
    keys = state.keys;
    rules.setContext({ actions: state.actions });
    lookup.setContext({ actions: state.actions });
    if (state.made !== made) version = -1; // not the process of before
    made = state.made;
    tiles.reset(state);
    apply(state);
    store.draw();
    link("live", "Live");
  });
  stream.addEventListener("frame", (e) => {
    const frame = JSON.parse(e.data);
    apply(frame);
    if (frame.point) {
      tiles.add(frame.point);
      rules.add(frame.rows ?? [], frame.point.seconds);
    }
    store.draw();
    link("live", "Live");
  });
  stream.addEventListener("error", () => {
    link("lost", "Connection lost, trying again");
    if (stream.readyState === EventSource.CLOSED) {
      // The server has refused: perhaps too many look at the page.
      stream.close();
      setTimeout(follow, 5000);
    }
  });
}

follow();
