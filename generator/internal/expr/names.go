package expr

import (
	"fmt"
	"go/types"
	"slices"
	"strconv"
	"strings"

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
func (m Signature) After() *Signature { m.moment = afterCall; return &m }

// Refused returns the method as an expression sees it when a call is refused.
func (m Signature) Refused() *Signature { m.moment = onRefusal; return &m }

// Streaming returns the method as an expression sees it for each message of a stream.
func (m Signature) Streaming() *Signature { m.moment = onMessage; return &m }

// lookup returns what #name means. If that is nothing, or not one thing, it
// returns nil, the error and, if there is one, the name to write instead.
func (m *Signature) lookup(name string) (p *Param, unknown, near string) {
	found := m.meant(name)
	switch {
	case m.Receiver != nil && m.Receiver.Source == name && !isPointer(m.Receiver.Type):
		return nil, fmt.Sprintf("#%s is the receiver of %s, which is no pointer: give the method a pointer receiver to use it", name, m.Name), ""
	case len(found) == 1:
		return found[0], "", ""
	case len(found) > 1:
		return nil, m.ambiguous(name, found), ""
	case m.moment != afterCall:
		if results := m.After().meant(name); len(results) > 0 {
			return nil, m.tooEarly(name), ""
		}
	}
	what, known := "parameter", m.known()
	if m.moment == afterCall {
		what = "parameter or result"
	}
	names := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return isDigits(k[1:]) })
	near = nearest.Name("#"+name, names)
	hint := ""
	switch {
	case near != "" && !isDigits(name):
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	case len(known) == 0:
		near, hint = "", ": it has none"
	default:
		near, hint = "", ": it has "+strings.Join(known, ", ")
		if len(names) < len(known) {
			hint += "; #0 is the first parameter"
		}
	}
	return nil, fmt.Sprintf("method %s has no %s #%s%s", m.Name, what, name, hint), near
}

// meant returns all that #name can mean: what has the name, the refusal, and
// what is called err or result.
func (m *Signature) meant(name string) []*Param {
	var found []*Param
	add := func(p *Param) {
		if p != nil && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	if isDigits(name) {
		add(nth(m.Params, name))
		return found
	}
	if m.Receiver != nil && m.Receiver.Source == name {
		add(m.Receiver)
	}
	for _, p := range m.Params {
		if p.Source == name && name != "_" {
			add(p)
		}
	}
	switch m.moment {
	case onRefusal:
		if name == "err" {
			add(m.Refusal)
		}
	case onMessage:
		if m.Message != nil && name == m.Message.Source {
			add(m.Message)
		}
	case afterCall:
		for _, p := range m.Results {
			if p.Source == name && name != "_" {
				add(p)
			}
		}
		if name == "err" {
			add(m.failure())
		}
		if number, isResult := strings.CutPrefix(name, "result"); isResult && number == "" {
			add(nth(m.Results, "0"))
		} else if isResult {
			add(nth(m.Results, number))
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
func (m *Signature) failure() *Param {
	if n := len(m.Results); n > 0 && IsError(m.Results[n-1].Type) {
		return m.Results[n-1]
	}
	return nil
}

// IsError reports whether a type is error.
func IsError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// known returns what an expression may use, as it writes it: names, and the numbers of
// parameters without one.
func (m *Signature) known() []string {
	var known []string
	for i, p := range m.Params {
		if p.Source != "" && p.Source != "_" {
			known = append(known, "#"+p.Source)
		} else {
			known = append(known, "#"+strconv.Itoa(i))
		}
	}
	if m.Receiver != nil && isPointer(m.Receiver.Type) {
		known = append(known, "#"+m.Receiver.Source)
	}
	switch {
	case m.moment == onRefusal && m.Refusal != nil:
		known = append(known, "#err")
	case m.moment == onMessage && m.Message != nil:
		known = append(known, "#"+m.Message.Source)
	case m.moment == afterCall:
		for _, p := range m.Results {
			if name := m.spelled(p, ""); name != "" {
				known = append(known, name)
			}
		}
	}
	return known
}

// spelled returns how to write a parameter or result other than as #avoid.
func (m *Signature) spelled(p *Param, avoid string) string {
	if i := slices.Index(m.Params, p); i >= 0 {
		return "#" + strconv.Itoa(i)
	}
	names := []string{p.Source}
	if p == m.failure() {
		names = append(names, "err")
	}
	if i := slices.Index(m.Results, p); i == 0 {
		names = append(names, "result", "result0")
	} else if i > 0 {
		names = append(names, "result"+strconv.Itoa(i))
	}
	for _, name := range names {
		if name != "" && name != "_" && name != avoid && len(m.meant(name)) == 1 {
			return "#" + name
		}
	}
	return ""
}

// ambiguous says that a name means more than one thing, and how to write each.
func (m *Signature) ambiguous(name string, found []*Param) string {
	things := make([]string, len(found))
	for i, p := range found {
		switch {
		case p == m.Refusal:
			things[i] = "the error of the refusal"
		case p == m.Message:
			things[i] = "what the stream carries"
		case slices.Contains(m.Params, p):
			things[i] = "the parameter"
		case p == m.failure():
			things[i] = "the error"
		default:
			things[i] = "the result"
		}
	}
	remedies := make([]string, len(found))
	for i, p := range found {
		if other := m.spelled(p, name); other != "" {
			remedies[i] = fmt.Sprintf("write %s for %s", other, things[i])
			continue
		}
		others := slices.Delete(slices.Clone(things), i, i+1)
		remedies[i] = fmt.Sprintf("rename %s to use %s", strings.Join(others, " and "), things[i])
	}
	return fmt.Sprintf("#%s can be %s of %s: %s", name, strings.Join(things, " or "), m.Name, strings.Join(remedies, ", "))
}

// tooEarly says why a result cannot be used.
func (m *Signature) tooEarly(name string) string {
	if m.moment == onRefusal {
		return fmt.Sprintf("#%s is a result of %s, and a refused call has none: use the parameters, or #err, the error of the refusal", name, m.Name)
	}
	if m.moment == onMessage {
		return fmt.Sprintf("#%s is a result of %s, and meter is for each message: use the parameters, or #%s", name, m.Name, m.Message.Source)
	}
	return fmt.Sprintf("#%s is a result of %s, not known before the call: only refund, settle and hold can use results", name, m.Name)
}
