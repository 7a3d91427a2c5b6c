package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A keyState is what is known about a key of a rule.
type keyState struct {
	Rule      string  `json:"rule"`
	Key       string  `json:"key"`
	State     string  `json:"state"` // one of states
	Shadow    bool    `json:"shadow"`
	Limit     *int64  `json:"limit"` // null: none, or each call brings its own
	Used      int64   `json:"used"`
	Remaining *int64  `json:"remaining"`
	Window    string  `json:"window"`
	RetryMS   *int64  `json:"retry_after_ms"` // null: never
	ResetMS   int64   `json:"reset_after_ms"`
	Past      []past  `json:"past,omitempty"` // the last periods, the last one first
	share     float64 // used of the limit
}

// A past period is one that is over.
type past struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Used  int64     `json:"used"`
}

// The states of a key, by how bad they are.
var states = []string{"off", "ok", "near", "refused", "held", "blocked", "broken"}

// refuses reports whether the next call is kept out.
func (s keyState) refuses() bool {
	return slices.Contains([]string{"refused", "held", "blocked"}, s.State)
}

// because says what a key is kept out by, other than its count, and what ends that.
func (s keyState) because() string {
	switch {
	case s.State == "broken":
		return ", since another program has written this key: ratectl reset removes it"
	case s.State == "held":
		return ", since the peer of these calls has asked for it: ratectl release ends that"
	case s.State == "blocked" && s.RetryMS == nil:
		return ", by an override: ratectl unblock or undo ends that"
	case s.State == "blocked":
		return ", by the rule itself: ratectl reset ends that"
	}
	return ""
}

// state returns what a call of a cost of 1 would find now.
func (s *session) state(ctx context.Context, d declared, key *runtime.Key) (keyState, error) {
	usages, err := s.limiter.Usage(ctx, s.limitOf(d, key))
	if err != nil {
		return keyState{}, err
	}
	k := keyState{Rule: d.Name, Key: key.Pattern(), Shadow: s.shadows(d, key), Window: d.per()}
	if on := s.modes.Enabled; len(usages) == 0 || on != nil && !*on {
		k.State, k.RetryMS = "off", new(int64)
		return k, nil
	}
	found := usages[0]
	k.ResetMS, k.Used = found.ResetAfter.Milliseconds(), found.Limit-found.Remaining
	for _, p := range found.Past {
		k.Past = append(k.Past, past(p))
	}
	if d.byCall == "" || s.max > 0 || found.Limit != runtime.MaxLog {
		k.Limit, k.Remaining, k.share = &found.Limit, &found.Remaining, 1
		if found.Limit > 0 {
			k.share = float64(k.Used) / float64(found.Limit)
		}
	}
	if found.RetryAfter != runtime.Never {
		k.RetryMS = new(found.RetryAfter.Milliseconds())
	}
	switch {
	case found.Blocked && d.Hold && k.RetryMS != nil:
		k.State = "held"
	case found.Blocked || k.RetryMS == nil:
		k.State = "blocked"
	case found.RetryAfter > 0:
		k.State = "refused"
	case k.share >= s.near:
		k.State = "near"
	default:
		k.State = "ok"
	}
	return k, nil
}

// shadows reports whether a rule refuses no call with a key.
func (s *session) shadows(d declared, key *runtime.Key) bool {
	shadow, of := d.shadow, s.modes.Rules[d.Name]
	if of.Mode != nil {
		shadow = !of.Mode.Denies()
	}
	if pattern, is := matching(of.Keys, key.Pattern()); is && of.Keys[pattern].Mode != nil {
		shadow = !of.Keys[pattern].Mode.Denies()
	}
	return shadow
}

// matching returns the pattern that is in force for a key: itself, or the longest
// beginning.
func matching[T any](patterns map[string]T, key string) (best string, is bool) {
	if _, is := patterns[key]; is {
		return key, true
	}
	for i := len(key); i >= 0; i-- {
		if _, is := patterns[key[:i]+"*"]; is {
			return key[:i] + "*", true
		}
	}
	return "", false
}

// worse orders states: what keeps callers out comes first.
func worse(a, b keyState) int {
	rank := func(s keyState) int { return -slices.Index(states, s.State) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.share, a.share), cmp.Compare(b.Used, a.Used), strings.Compare(a.Key, b.Key))
}

// row returns the state as cells of a table.
func (s keyState) row() []string {
	state := s.State
	if s.Shadow && s.State != "off" {
		state += " (shadow)"
	}
	if s.State == "broken" { // it is not what the rule writes
		return []string{s.Key, state, "-", "-", "-"}
	}
	used := s.used()
	if s.Limit != nil && used != "-" {
		used = fmt.Sprintf("%d/%d", s.Used, *s.Limit)
	} else if s.State == "off" {
		used = "-"
	}
	return []string{s.Key, state, used, s.retry(), shortDuration(time.Duration(s.ResetMS) * time.Millisecond)}
}

// used returns what is used, if that is known: while a key is held nothing is left of it.
func (s keyState) used() string {
	if s.State == "held" || s.State == "broken" {
		return "-"
	}
	return fmt.Sprint(s.Used)
}

func (s keyState) retry() string {
	switch {
	case s.RetryMS == nil:
		return "never"
	case *s.RetryMS == 0 && !s.refuses() && s.State != "broken":
		return "-"
	}
	return shortDuration(time.Duration(*s.RetryMS) * time.Millisecond)
}

// inForce returns which overrides a key is subject to.
func inForce(entries []override.Entry, d declared, key *runtime.Key) []overrideEntry {
	now := time.Now()
	found, patterns := []overrideEntry{}, make(map[string]bool)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e override.Entry) bool { return e.At(now) == runtime.KeyOverride{} })
	for _, e := range entries {
		if e.Rule == d.Name && e.Keys {
			patterns[e.Pattern] = true
		}
	}
	best, is := matching(patterns, key.Pattern())
	for _, e := range entries {
		if e.Rule == override.All || e.Rule == d.Name && (!e.Keys || is && e.Pattern == best) {
			found = append(found, entryOf(e.Target, e.Change))
		}
	}
	return found
}
