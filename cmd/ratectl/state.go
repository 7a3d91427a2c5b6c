package main

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/internal/operate"
)

// because says what a key is kept out by, other than its count, and what ends that.
func because(s operate.State) string {
	if s.State == operate.Blocked && s.RetryMS == nil {
		return ", by an override: ratectl unblock or undo ends that"
	}
	return map[string]string{
		operate.Broken:  ", since another program has written this key: ratectl reset removes it",
		operate.Held:    ", since the peer of these calls has asked for it: ratectl release ends that",
		operate.Blocked: ", by the rule itself: ratectl reset ends that",
		operate.Unknown: ": each call brings its max",
	}[s.State]
}

// stateRow returns a state as cells of a table.
func stateRow(s operate.State) []string {
	state := s.State
	if s.Shadow && s.State != operate.Off {
		state += " (shadow)"
	}
	if s.State == operate.Broken { // it is not what the rule writes
		return []string{s.Key, state, "-", "-", "-"}
	}
	used := usedOf(s)
	if s.Limit != nil && used != "-" {
		used = fmt.Sprintf("%d/%d", s.Used, *s.Limit)
	} else if s.State == operate.Off {
		used = "-"
	}
	if s.Differs != "" {
		used += " of " + s.Differs
	}
	return []string{s.Key, state, used, retryOf(s), operate.ShortDuration(time.Duration(s.ResetMS) * time.Millisecond)}
}

// usedOf returns what is used, if that is known: while a key is held nothing is left of it.
func usedOf(s operate.State) string {
	if s.State == operate.Held || s.State == operate.Broken {
		return "-"
	}
	return fmt.Sprint(s.Used)
}

func retryOf(s operate.State) string {
	if s.RetryMS == nil {
		return "never"
	}
	if *s.RetryMS == 0 && !s.Refuses() && s.State != operate.Broken {
		return "-"
	}
	if s.Permits && s.State == operate.Refused {
		return "when a call ends"
	}
	return operate.ShortDuration(time.Duration(*s.RetryMS) * time.Millisecond)
}
