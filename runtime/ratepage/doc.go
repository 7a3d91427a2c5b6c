// Package ratepage is a page on which an operator sees the limits of a program as
// they are now, and may change them: an [http.Handler] that the program mounts
// where it likes.
//
//	page := ratepage.New()
//	limiter := runtime.New(store, runtime.WithObserver(page.Observer()))
//	mux.Handle("/limits/", http.StripPrefix("/limits", page))
//
// The page shows rules with what holds for them, rates of admitted, refused and
// undecided calls, the state of Redis, and overrides; and it looks up what is left
// for one key, without charging it. While nobody looks at it the page costs a
// counter for each decision.
//
// It has no log-in of its own. Mount it where operators alone can reach it, or
// behind the program's own authentication. It changes nothing unless [WithActions]
// allows that, and shows no key of a caller unless [WithKeys] does.
//
// # JSON for programs
//
// Paths are relative to the page. Times end in _ms and are in milliseconds.
//
//   - GET api/rules: version, and rules, each with max, window_ms, mode, enabled,
//     origin, factor, overridden, and what was declared.
//   - GET api/listing: the declared rules, one a line, as rategen list -json without the
//     parts of keys, for ratectl -rules.
//   - GET api/state: totals and points of calls (columns names them), redis, history,
//     refused_keys, and the actions that are offered.
//   - GET api/overrides: entries with what each says and its expiry, and history.
//   - GET api/processes: which report to Redis, by machine and version, and which of them have
//     in force what the editor's hash says; the calls of all, and the keys Redis is asked about most.
//   - GET api/refused?since=1h, 3h or 24h: the keys that all processes have refused most, see
//     [bridge.RefusedMinute], and the number of other refusals.
//   - GET api/stream: server-sent events: a state, the rules, then each second a frame:
//     point with the calls n of all rules in so many seconds, and rows of the rules that
//     changed.
//   - GET api/keys?rule=R&key=K: limits, each with state (off, ok, unknown, near, refused, held, blocked or broken),
//     limit, used, remaining, window, retry_after_ms (null: never), reset_after_ms and held_by, of permits; with max=N
//     where calls bring it. Without a rule they are those of all rules that concern the key, and rules and keys have it
//     in their names: of keys those that were refused in the last day, or that an override is for.
//   - POST api/actions: a body {"action": "reset", "rule": "R", "key": "K"}, with max and
//     burst or window_ms for override and override_key, weight for weigh, whose key is a share, change for undo; for_ms or "endless": true, and why.
//
// An error is {"error": "…"}: 400 for a wrong request, 403 without the right or without
// WithActions, 404 for an unknown rule or path, 405, 409 if the editor refuses, 415, 500
// if middleware hides http.Flusher from the stream, 503 if Redis is down.
package ratepage
