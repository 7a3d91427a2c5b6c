package contest

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/rategen/rategen/bench/internal/limiters"
)

// A Part is what is measured of all there is: with empty expressions it is all.
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
func (p Part) Whole() bool { return p.Only.String() == "" && p.Cases.String() == "" }

// OnlyCurve are the cases of the curve.
const OnlyCurve = "^curve "

// Curve reports whether the part is the curve, and all of its limiters.
func (p Part) Curve() bool { return p.Only.String() == "" && p.Cases.String() == OnlyCurve }

// Check returns an error if the part is empty: a misspelt name must not look
// like a measurement.
func (p Plan) Check() error {
	part := p.Part
	var names []string
	headings := []string{sizeOfKey}
	for _, g := range p.groups(new(Result)) {
		for _, l := range g.contestants {
			names = append(names, l.Name)
		}
		for _, c := range g.cases {
			headings = append(headings, g.over+c.String())
		}
	}
	if !slices.ContainsFunc(names, part.Only.MatchString) {
		return fmt.Errorf("no limiter's name matches %q", part.Only)
	}
	if !slices.ContainsFunc(headings, part.Cases.MatchString) {
		return fmt.Errorf("no case's heading matches %q: headings are as %q, %q and %q", part.Cases, headings[1], headings[len(headings)-1], sizeOfKey)
	}
	return nil
}

// String says what is left out.
func (p Part) String() string {
	s := "Only a part"
	if p.Only.String() != "" {
		s += fmt.Sprintf(", limiters that match %q and those that they are compared with", p.Only)
	}
	if p.Cases.String() != "" {
		s += fmt.Sprintf(", cases that match %q", p.Cases)
	}
	return s
}

// turns returns which of some limiters have their turns.
func (p Part) turns(all []limiters.Limiter) []limiters.Limiter {
	turns := map[string]bool{limiters.Base: true, limiters.Floor: true, limiters.ScriptFloor: true, limiters.LocalBase: true}
	for _, l := range all {
		if p.Only.MatchString(l.Name) {
			turns[l.Name], turns[l.ByHand] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(l limiters.Limiter) bool { return !turns[l.Name] })
}
