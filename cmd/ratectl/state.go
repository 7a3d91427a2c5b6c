package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime"
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

// because says what a key is kept out by, other than its count, and what ends that.
func (s keyState) because() string {
	switch {
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
func (o *operator) state(ctx context.Context, d declared, key *runtime.Key) (keyState, error) {
	usages, err := o.limiter.Usage(ctx, o.limitOf(d, key))
	if err != nil {
		return keyState{}, o.explained(err)
	}
	s := keyState{Rule: d.Name, Key: key.Pattern(), Shadow: o.shadows(d, key), Window: d.per()}
	if off := o.modes.Enabled; len(usages) == 0 || off != nil && !*off {
		s.State, s.RetryMS = "off", new(int64)
		return s, nil
	}
	found := usages[0]
	s.ResetMS = found.ResetAfter.Milliseconds()
	s.Used = found.Limit - found.Remaining
	for _, p := range found.Past {
		s.Past = append(s.Past, past(p))
	}
	unknown := d.byCall != "" && o.max == 0 && found.Limit == runtime.MaxLog
	if !unknown {
		s.Limit, s.Remaining = &found.Limit, &found.Remaining
		s.share = 1
		if found.Limit > 0 {
			s.share = float64(s.Used) / float64(found.Limit)
		}
	}
	if found.RetryAfter != runtime.Never {
		s.RetryMS = new(found.RetryAfter.Milliseconds())
	}
	switch {
	case found.Blocked && d.Hold && s.RetryMS != nil:
		s.State = "held"
	case found.Blocked || s.RetryMS == nil:
		s.State = "blocked"
	case found.RetryAfter > 0:
		s.State = "refused"
	case s.share >= o.near:
		s.State = "near"
	default:
		s.State = "ok"
	}
	return s, nil
}

// shadows reports whether a rule refuses no call with a key.
func (o *operator) shadows(d declared, key *runtime.Key) bool {
	shadow := d.shadow
	of := o.modes.Rules[d.Name]
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

// row returns the state as cells of a table.
func (s keyState) row() []string {
	state := s.State
	if s.Shadow && s.State != "off" {
		state += " (shadow)"
	}
	if s.State == "broken" { // it is not what the rule writes
		return []string{s.Key, state, "-", "-", "-"}
	}
	used := strconv.FormatInt(s.Used, 10)
	if s.Limit != nil {
		used = fmt.Sprintf("%d/%d", s.Used, *s.Limit)
	} else if s.State == "off" {
		used = "-"
	}
	return []string{s.Key, state, used, s.retry(), shortDuration(time.Duration(s.ResetMS) * time.Millisecond)}
}

func (s keyState) retry() string {
	switch {
	case s.RetryMS == nil:
		return "never"
	case *s.RetryMS == 0 && slices.Contains([]string{"off", "ok", "near"}, s.State):
		return "-"
	}
	return shortDuration(time.Duration(*s.RetryMS) * time.Millisecond)
}

// shortDuration writes a duration with no more digits than an operator reads.
func shortDuration(d time.Duration) string {
	switch {
	case d >= time.Hour:
		d = d.Round(time.Second)
	case d >= time.Minute:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	text := d.String()
	for _, zero := range []struct{ long, short string }{{"m0s", "m"}, {"h0m", "h"}} {
		if len(text) > len(zero.long) && text[len(text)-len(zero.long):] == zero.long {
			text = text[:len(text)-len(zero.long)] + zero.short
		}
	}
	return text
}
