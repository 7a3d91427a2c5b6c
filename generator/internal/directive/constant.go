package directive

import (
	"fmt"
	"go/ast"
	"go/parser"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/internal/spec"
)

// A constants column reads the value of an option that is known when the code is
// generated: a number as directives write it, or a constant expression of Go. The
// latter stays a [Value] until [Settings.SetConstant].
type constants struct {
	read       func(text string) (any, error)
	check      func(n int64) (any, error)
	isDuration bool
}

// durations are constants from least to most. The error of another one says which
// are allowed.
func durations(least, most time.Duration, allowed string) *constants {
	check := func(d time.Duration, text string) (any, error) {
		if d < least || d > most {
			return time.Duration(0), fmt.Errorf("%s is not %s", text, allowed)
		}
		return d, nil
	}
	return &constants{
		isDuration: true,
		check:      func(n int64) (any, error) { return check(time.Duration(n), spec.DurationText(time.Duration(n))) },
		read: func(text string) (any, error) {
			d, err := parseDuration(text)
			if err != nil {
				return time.Duration(0), err
			}
			return check(d, text)
		},
	}
}

// integers are constants from least to most.
func integers(least, most int64) *constants {
	check := func(n int64) (any, error) {
		if n < least || n > most {
			return int64(0), fmt.Errorf("%d is not an integer between %d and %d", n, least, most)
		}
		return n, nil
	}
	return &constants{check: check, read: func(text string) (any, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return int64(0), fmt.Errorf("%q is not an integer between %d and %d", text, least, most)
		}
		return check(n)
	}}
}

// parse is the parse column of an option with constants.
func (c *constants) parse(v Value) (any, error) {
	if strings.Contains(v.Text, "#") {
		return nil, fmt.Errorf("%s depends on the call, and all calls of a key must agree on it: write a constant, or several limits with when=", v.Text)
	}
	if namesSomething(v.Text) {
		return v, nil
	}
	return c.read(v.Text)
}

// namesSomething reports whether a text is a Go expression with a name in it.
func namesSomething(text string) bool {
	node, err := parser.ParseExpr(text)
	found := false
	if err == nil {
		ast.Inspect(node, func(n ast.Node) bool {
			_, isName := n.(*ast.Ident)
			found = found || isName
			return !found
		})
	}
	return found
}

// A Constant is an option whose value is a Go expression that must be constant.
type Constant struct {
	Option     string
	Value      Value
	IsDuration bool // else an integer
}

// Constants returns the constants of a directive that are not known yet.
func (s *Settings) Constants() []Constant {
	var found []Constant
	for i := range Options {
		o := &Options[i]
		v, ok := s.values[o.Name].(Value)
		// An expression that a call may change is a constant in a policy.
		if ok && o.constant != nil && (o.parse == nil || s.where == inPolicy && namesSomething(v.Text)) {
			found = append(found, Constant{o.Name, v, o.constant.isDuration})
		}
	}
	return found
}

// SetConstants gives constants their values. It reports those that are out of
// bounds.
func (s *Settings) SetConstants(known map[Constant]int64, report diag.Func) {
	for _, c := range s.Constants() {
		n, ok := known[c]
		if !ok {
			delete(s.values, c.Option) // what is wrong with it is reported
			continue
		}
		value, err := optionNamed(c.Option).constant.check(n)
		if err != nil {
			report(c.Value.Pos, "%s: %s", c.Option, err).Mark(c.Value.Tail(0))
		}
		if optionNamed(c.Option).parse != nil {
			value = Value{Pos: c.Value.Pos, Text: strconv.FormatInt(n, 10)}
		}
		s.values[c.Option] = value
		s.named = append(s.named, c)
	}
}

// Named returns the constants that give options their values.
func (s *Settings) Named() []Constant { return s.named }

// isNamed reports whether a constant gives an option its value.
func (s *Settings) isNamed(option string) bool {
	return slices.ContainsFunc(s.named, func(c Constant) bool { return c.Option == option })
}

// adoptNamed takes over the constants that give some options their values.
func (s *Settings) adoptNamed(from *Settings, options ...string) {
	for _, c := range from.named {
		if slices.Contains(options, c.Option) {
			s.named = append(s.named, c)
		}
	}
}

// explainConstants tells which numbers have a name.
func (s *Settings) explainConstants() string {
	var all []string
	for _, c := range s.named {
		all = append(all, "its "+c.Option+" is "+c.Value.Text)
	}
	if len(all) == 0 {
		return ""
	}
	return "I" + List(all, "and")[1:] + "."
}
