package expr

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/internal/nearest"
)

// A moment says when an expression is evaluated, and so what it knows beside
// the parameters.
type moment int

const (
	beforeCall moment = iota // nothing
	afterCall                // the results
	onRefusal                // the error of the refusal
	onMessage                // what a stream carries
)

// After returns the method as an expression sees it when the call is over: with
// its results.
func (s Signature) After() *Signature { s.moment = afterCall; return &s }

// Refused returns the method as an expression sees it when a call is refused.
func (s Signature) Refused() *Signature { s.moment = onRefusal; return &s }

// Streaming returns the method as an expression sees it for each message of a stream.
func (s Signature) Streaming() *Signature { s.moment = onMessage; return &s }

// lookup returns what #name means. If that is nothing, or not one thing, it
// returns nil, the error and, if there is one, the name to write instead.
func (s *Signature) lookup(name string) (p *Param, unknown, near string) {
	found := s.meant(name)
	if s.Receiver != nil && s.Receiver.Source == name && !gotypes.Is[*types.Pointer](s.Receiver.Type) {
		return nil, fmt.Sprintf("#%s is the receiver of %s, which is no pointer: give the method a pointer receiver to use it", name, s.Name), ""
	}
	if len(found) == 1 {
		return found[0], "", ""
	}
	if len(found) > 1 {
		return nil, s.ambiguous(name, found), ""
	}
	if s.moment != afterCall {
		if results := s.After().meant(name); len(results) > 0 {
			return nil, s.tooEarly(name), ""
		}
	}
	what, known := "parameter", s.known()
	if s.moment == afterCall {
		what = "parameter or result"
	}
	names := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return isDigits(k[1:]) })
	near = nearest.Name("#"+name, names)
	hint := ""
	if near != "" && !isDigits(name) {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	} else if len(known) == 0 {
		near, hint = "", ": it has none"
	} else {
		near, hint = "", ": it has "+strings.Join(known, ", ")
		if len(names) < len(known) {
			hint += "; #0 is the first parameter"
		}
	}
	return nil, fmt.Sprintf("method %s has no %s #%s%s", s.Name, what, name, hint), near
}

// meant returns all that #name can mean: what has the name, the refusal, and
// what is called err or result.
func (s *Signature) meant(name string) []*Param {
	var found []*Param
	add := func(p *Param) {
		if p != nil && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	if isDigits(name) {
		add(nth(s.Params, name))
		return found
	}
	if s.Receiver != nil && s.Receiver.Source == name {
		add(s.Receiver)
	}
	for _, p := range s.Params {
		if p.Source == name && name != "_" {
			add(p)
		}
	}
	switch s.moment {
	case onRefusal:
		if name == "err" {
			add(s.Refusal)
		}
	case onMessage:
		if s.Message != nil && name == s.Message.Source {
			add(s.Message)
		}
	case afterCall:
		for _, p := range s.Results {
			if p.Source == name && name != "_" {
				add(p)
			}
		}
		if name == "err" {
			add(s.failure())
		}
		if number, isResult := strings.CutPrefix(name, "result"); isResult && number == "" {
			add(nth(s.Results, "0"))
		} else if isResult {
			add(nth(s.Results, number))
		}
	}
	return found
}

// nth returns one of some parameters or results by its number, or nil.
func nth(all []*Param, number string) *Param {
	if n, err := strconv.Atoi(number); err == nil && isDigits(number) && n < len(all) {
		return all[n]
	}
	return nil
}

// failure returns the last result if it is an error, or nil.
func (s *Signature) failure() *Param {
	if n := len(s.Results); n > 0 && IsError(s.Results[n-1].Type) {
		return s.Results[n-1]
	}
	return nil
}

// IsError reports whether a type is error.
func IsError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// known returns what an expression may use, as it writes it: names, and the numbers of
// parameters without one.
func (s *Signature) known() []string {
	var known []string
	for i, p := range s.Params {
		if p.Source != "" && p.Source != "_" {
			known = append(known, "#"+p.Source)
		} else {
			known = append(known, "#"+strconv.Itoa(i))
		}
	}
	if s.Receiver != nil && gotypes.Is[*types.Pointer](s.Receiver.Type) {
		known = append(known, "#"+s.Receiver.Source)
	}
	if s.moment == onRefusal && s.Refusal != nil {
		known = append(known, "#err")
	} else if s.moment == onMessage && s.Message != nil {
		known = append(known, "#"+s.Message.Source)
	} else if s.moment == afterCall {
		for _, p := range s.Results {
			if name := s.spelled(p, ""); name != "" {
				known = append(known, name)
			}
		}
	}
	return known
}

// spelled returns how to write a parameter or result other than as #avoid.
func (s *Signature) spelled(p *Param, avoid string) string {
	if i := slices.Index(s.Params, p); i >= 0 {
		return "#" + strconv.Itoa(i)
	}
	names := []string{p.Source}
	if p == s.failure() {
		names = append(names, "err")
	}
	if i := slices.Index(s.Results, p); i == 0 {
		names = append(names, "result", "result0")
	} else if i > 0 {
		names = append(names, "result"+strconv.Itoa(i))
	}
	for _, name := range names {
		if name != "" && name != "_" && name != avoid && len(s.meant(name)) == 1 {
			return "#" + name
		}
	}
	return ""
}

// ambiguous says that a name means more than one thing, and how to write each.
func (s *Signature) ambiguous(name string, found []*Param) string {
	things := make([]string, len(found))
	for i, p := range found {
		switch {
		case p == s.Refusal:
			things[i] = "the error of the refusal"
		case p == s.Message:
			things[i] = "what the stream carries"
		case slices.Contains(s.Params, p):
			things[i] = "the parameter"
		case p == s.failure():
			things[i] = "the error"
		default:
			things[i] = "the result"
		}
	}
	remedies := make([]string, len(found))
	for i, p := range found {
		if other := s.spelled(p, name); other != "" {
			remedies[i] = fmt.Sprintf("write %s for %s", other, things[i])
			continue
		}
		others := slices.Delete(slices.Clone(things), i, i+1)
		remedies[i] = fmt.Sprintf("rename %s to use %s", strings.Join(others, " and "), things[i])
	}
	return fmt.Sprintf("#%s can be %s of %s: %s", name, strings.Join(things, " or "), s.Name, strings.Join(remedies, ", "))
}

// tooEarly says why a result cannot be used.
func (s *Signature) tooEarly(name string) string {
	if s.moment == onRefusal {
		return fmt.Sprintf("#%s is a result of %s, and a refused call has none: use the parameters, or #err, the error of the refusal", name, s.Name)
	}
	if s.moment == onMessage {
		return fmt.Sprintf("#%s is a result of %s, and meter is for each message: use the parameters, or #%s", name, s.Name, s.Message.Source)
	}
	return fmt.Sprintf("#%s is a result of %s, not known before the call: only refund, settle and hold can use results", name, s.Name)
}
