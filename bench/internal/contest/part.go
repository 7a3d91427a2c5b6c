package contest

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/rategen/rategen/bench/internal/limiters"
)

// A Part is what is measured of all there is. The zero value is all of it.
type Part struct {
	// Only is what the names of limiters match. Those that others are compared
	// with have their turn even so.
	Only *regexp.Regexp
	// Cases is what the headings of cases match.
	Cases *regexp.Regexp
}

// The headings of cases: the first three stand before the case.
const (
	overRedis = "over Redis, "
	curveOver = "curve over Redis, "
	inMemory  = "in memory, "
	sizeOfKey = "size of a key in Redis"
)

// Whole reports whether nothing is left out.
func (p Part) Whole() bool { return p.Only == nil && p.Cases == nil }

// OnlyCurve are the cases of the curve.
const OnlyCurve = "^curve "

// Curve reports whether the part is the curve, and all of its limiters.
func (p Part) Curve() bool { return p.Only == nil && p.Cases != nil && p.Cases.String() == OnlyCurve }

// Check returns an error if the part is empty: a misspelt name must not look
// like a measurement.
func (p Plan) Check() error {
	part := p.Part
	var names, headings []string
	for _, l := range slices.Concat(limiters.Leased(), limiters.Rategen(), limiters.Budgets(), limiters.Divided(), limiters.Peers(), limiters.ByHand()) {
		names = append(names, l.Name)
	}
	for _, l := range limiters.Locals(limiters.Server{}) {
		names = append(names, l.Name)
	}
	for _, c := range SharedCases {
		headings = append(headings, overRedis+c.String())
	}
	for _, c := range LocalCases {
		headings = append(headings, inMemory+c.String())
	}
	for _, n := range p.Callers {
		headings = append(headings, curveOver+Case{n, 1000, Distinct}.String())
	}
	headings = append(headings, sizeOfKey)
	if part.Only != nil && !slices.ContainsFunc(names, part.Only.MatchString) {
		return fmt.Errorf("no limiter's name matches %q", part.Only)
	}
	if part.Cases != nil && !slices.ContainsFunc(headings, part.Cases.MatchString) {
		return fmt.Errorf("no case's heading matches %q: headings are as %q, %q and %q", part.Cases, headings[0], headings[len(SharedCases)], sizeOfKey)
	}
	return nil
}

// String says what is left out.
func (p Part) String() string {
	s := "Only a part"
	if p.Only != nil {
		s += fmt.Sprintf(", limiters that match %q and those that they are compared with", p.Only)
	}
	if p.Cases != nil {
		s += fmt.Sprintf(", cases that match %q", p.Cases)
	}
	return s
}

// heading reports whether a case is measured.
func (p Part) heading(s string) bool { return p.Cases == nil || p.Cases.MatchString(s) }

// limiter reports whether a limiter has its turns.
func (p Part) limiter(name string) bool { return p.Only == nil || p.Only.MatchString(name) }

// shared returns which of the limiters over Redis have their turns.
func (p Part) shared(all []limiters.Shared) []limiters.Shared {
	turns := map[string]bool{limiters.Base: true, limiters.Floor: true, limiters.ScriptFloor: true}
	for _, l := range all {
		if p.limiter(l.Name) {
			turns[l.Name], turns[l.ByHand] = true, true
		}
	}
	return slices.DeleteFunc(all, func(l limiters.Shared) bool { return !turns[l.Name] })
}

// local returns which of the limiters in memory have their turns.
func (p Part) local(all []limiters.Local) []limiters.Local {
	return slices.DeleteFunc(all, func(l limiters.Local) bool {
		return l.Name != limiters.LocalBase && !p.limiter(l.Name)
	})
}
