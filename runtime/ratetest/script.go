package ratetest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// An Answer is what a rule says to a call in place of its count.
type Answer struct {
	text        string
	retryAfter  time.Duration // of a refusal
	unavailable bool
	slow        time.Duration
}

// Refuse refuses a call, as if the limit had no room for it until retryAfter is over.
// With [runtime.Never] the call can never be admitted: its error is also
// [runtime.ErrCostExceedsLimit]. The other limits of the call are not charged.
func Refuse(retryAfter time.Duration) Answer {
	return Answer{text: fmt.Sprintf("Refuse(%s)", period(retryAfter)), retryAfter: retryAfter}
}

// Unavailable gives no answer, as a Redis that is gone. The failure policies of the
// call's rules decide.
func Unavailable() Answer { return Answer{text: "Unavailable()", unavailable: true} }

// Slow has a call decided by its counts after d, or ends when the call's context does.
// The test must be in a bubble of testing/synctest. A Redis does not answer that
// late: when its timeout is over, after 50 ms by default, it is [Unavailable].
func Slow(d time.Duration) Answer { return Answer{text: fmt.Sprintf("Slow(%v)", d), slow: d} }

// errUnavailable is the store's error that Unavailable stands for. It is of
// [observe.ClassTimeout].
var errUnavailable = fmt.Errorf("ratetest: the script of the rule says unavailable: %w", os.ErrDeadlineExceeded)

// A script is the answers that a rule is to give.
type script struct {
	next   []*scripted
	always *scripted // or nil
}

// A scripted answer is given a number of times.
type scripted struct {
	Answer
	want, given int // want is 0 for always
}

// Next has a rule give the next n calls that it decides an answer. Answers for one
// rule are given in the order of the calls of Next. If fewer calls come the test
// fails when it ends. A Peek sees the answer and does not use it up. A call that asks
// again, because its rule has a Wait, uses up one each time.
//
// A rule decides no calls that cost nothing, that could never be admitted, or that
// are switched off.
func (l *Limiter) Next(rule string, n int, a Answer) {
	l.store.t.Helper()
	if n < 1 {
		l.store.t.Fatalf("ratetest: Next(%q, %d, %s): at least one call", rule, n, a.text)
	}
	l.store.script(rule, &scripted{Answer: a, want: n})
}

// Always has a rule give an answer to all calls that it decides from now on, once
// those of [Limiter.Next] are given. It replaces what Always said about the rule
// before. If no call comes the test fails when it ends.
func (l *Limiter) Always(rule string, a Answer) {
	l.store.t.Helper()
	l.store.script(rule, &scripted{Answer: a})
}

func (s *store) script(rule string, a *scripted) {
	s.t.Helper()
	if a.text == "" {
		s.t.Fatalf("ratetest: rule %q: an Answer is made by Refuse, Unavailable or Slow", rule)
	} else if a.slow < 0 || a.slow == 0 && !a.unavailable && a.retryAfter <= 0 {
		s.t.Fatalf("ratetest: rule %q: %s: the time must be above 0", rule, a.text)
	} else if a.slow > 0 && !s.bubble {
		s.t.Fatalf("ratetest: rule %q: %s: no time passes outside of a bubble: make the limiter in synctest.Test", rule, a.text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.scripts[rule]
	if of == nil {
		of = new(script)
		s.scripts[rule] = of
	}
	if a.want == 0 {
		of.always = a
	} else {
		of.next = append(of.next, a)
	}
}

// A reply is what the scripts of a call's rules say together.
type reply struct {
	unavailable bool
	slow        time.Duration
	refused     []time.Duration // by charge; 0: not refused; nil: none is
}

// reply returns what the scripts say to a call, and notes that they did if use is
// true.
func (s *store) reply(call *terms.Call, use bool) (r reply) {
	for i := range call.Charges {
		label := call.Charges[i].Label
		if label == nil {
			continue // a limiter asks for itself
		}
		of := s.scripts[label.Name]
		if of == nil {
			continue
		}
		a := of.always
		if len(of.next) > 0 {
			a = of.next[0]
		}
		if a == nil {
			continue
		}
		if use {
			if a.given++; a.given == a.want {
				of.next = of.next[1:]
			}
		}
		r.unavailable = r.unavailable || a.unavailable
		r.slow = max(r.slow, a.slow)
		if a.retryAfter > 0 {
			if r.refused == nil {
				r.refused = make([]time.Duration, len(call.Charges))
			}
			r.refused[i] = a.retryAfter
		}
	}
	return r
}

// unmet returns the scripted answers that were not given.
func (s *store) unmet() (lines []string) {
	for _, rule := range slices.Sorted(maps.Keys(s.scripts)) {
		of := s.scripts[rule]
		for _, a := range of.next {
			lines = append(lines, fmt.Sprintf("rule %q: %s was to answer %d calls, and %d came", rule, a.text, a.want, a.given))
		}
		if of.always != nil && of.always.given == 0 {
			lines = append(lines, fmt.Sprintf("rule %q: %s was to answer all calls, and none came", rule, of.always.text))
		}
	}
	return lines
}
