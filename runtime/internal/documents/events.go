package documents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// Events are those that a limiter has told, by their kind.
type Events struct {
	mu     sync.Mutex
	told   map[string][]string
	panics bool // whoever tells one, instead
}

func (h *Events) add(kind, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.panics {
		panic("events")
	}
	if h.told == nil {
		h.told = map[string][]string{}
	}
	h.told[kind] = append(h.told[kind], fmt.Sprintf(format, args...))
}

// Take returns events that were told since the last time.
func (h *Events) Take(kind string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.told[kind]
	delete(h.told, kind)
	if len(all) == 0 {
		return "none"
	}
	if kind == "panics" { // of several goroutines
		slices.Sort(all)
	}
	return strings.Join(all, " | ")
}

// recorded is a recorder of decisions, with their numbers.
func (h *Events) recorded(ev observe.DecisionEvent) {
	h.add("recorded", "%s %v %d of %d at %d, retry %v, reset %v, more %v, by %v %v %v %d in %v",
		ev.Rule, ev.Verdict, ev.Remaining, ev.Limit, ev.Cost, ev.RetryAfter, ev.ResetAfter, ev.MoreAfter, ev.Source, ev.Mode, ev.Algorithm, ev.Max, ev.Window)
}

// refused is a recorder of refusals.
func (h *Events) refused(r observe.Refusal) {
	text := Words(r.Err)
	if r.Returned != r.Err {
		text += " as " + Words(r.Returned)
	}
	h.add("refusals", "%s", text)
}

// Observer returns one that is told them.
func (h *Events) Observer() *observe.Observer {
	return &observe.Observer{
		Decision: func(ctx context.Context, ev observe.DecisionEvent) {
			text := fmt.Sprintf("%s %v", ev.Rule, ev.Verdict)
			for _, o := range []struct {
				is   bool
				text string
			}{{ev.Cost != 1, fmt.Sprint("at ", ev.Cost)}, {ev.Source != rule.SourceStore, "by " + ev.Source.String()}, {ev.Blocked, "blocked"}, {ev.Overridden, "overridden"}, {ev.InvalidKey, "invalid key"}, {ev.EmptyPart, "empty part"}, {ev.Mode != 0, ev.Mode.String()}} {
				if o.is {
					text += " " + o.text
				}
			}
			h.add("decisions", "%s", text+lost(ctx))
		},
		KeyRefused: func(_ context.Context, ev observe.KeyRefusedEvent) {
			h.add("keys", "%s %s shadow %v", ev.Rule, ev.Key, ev.Shadow)
		},
		Failure: func(ctx context.Context, ev observe.FailureEvent) {
			h.add("failures", "%s %v %v%s", ev.Rule, ev.Class, ev.Policy, lost(ctx))
		},
		Wait: func(_ context.Context, ev observe.WaitEvent) {
			if ev.Waiting {
				h.add("waits", "%s begins", ev.Rule)
			} else if ev.Admitted {
				h.add("waits", "%s ends after %v", ev.Rule, ev.Waited)
			} else {
				h.add("waits", "%s is left after %v", ev.Rule, ev.Waited)
			}
		},
		Call:        func(_ context.Context, ev observe.CallEvent) { h.add("calls", "waited %v", ev.Waited) },
		PeerRefused: func(_ context.Context, ev observe.PeerRefusedEvent) { h.add("peers", "%s", ev.Rule) },
		Override: func(ev observe.OverrideEvent) {
			h.add("overrides", "%d rules, enabled %v, error %v", ev.Rules, ev.Enabled, ev.Err)
		},
		Threshold: func(ev observe.ThresholdEvent) {
			h.add("shares", "%d%% of %d of %s by %s with %d", ev.Percent, ev.Limit, ev.Rule, ev.Key, ev.Used)
		},
		Panic: func(ev observe.PanicEvent) { h.add("panics", "%s", ev.In) },
		Scale: func(ev observe.ScaleEvent) { h.add("scales", "%s by %v", ev.Rule, ev.Factor) },
		Hold: func(_ context.Context, ev observe.HoldEvent) {
			h.add("holds", "%s for %v, error %v", ev.Rule, ev.For, ev.Err)
		},
	}
}
