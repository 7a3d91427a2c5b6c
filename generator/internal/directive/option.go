package directive

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/spec"
)

// An Option is one option of a directive: a row of [Options]. The manual, the
// table in the documentation, the hints for misspelt directives, the generated
// rule and the output of rategen list and rategen explain are made from it.
type Option struct {
	// Name stands before the equal sign.
	Name string
	// Value is a placeholder for what stands after it.
	Value string
	// Doc says what the option does, in a phrase of Markdown.
	Doc string
	// Default says what holds without the option, in a phrase of Markdown.
	Default string

	// guesses are what others call the option, separated by blanks.
	guesses string
	// onInterface restricts the option to the directive of a whole interface.
	onInterface bool
	// onMethod restricts it to the directive of a method.
	onMethod bool
	// ownOnly keeps the option out of policies: it is about one method or interface.
	ownOnly bool
	// counts says that limits which differ in the option cannot count together.
	counts bool
	// parse reads the value. Beside an error it returns as much of the value as
	// can be understood, for the checks that follow.
	parse func(Value) (any, error)
	// constant reads the value in place of parse, if it may be a Go constant.
	constant *constants
	// words are values that stand for themselves, and are no constants.
	words func(text string) (any, bool)
	// perCall says that the value may be an expression that depends on the call.
	perCall bool
	// fits returns an error if the value contradicts other options of the
	// directive. It is nil where that cannot be.
	fits func(*Settings) error

	// field is the field of runtime.Rule that the option sets. It is empty if
	// the option sets none, or one that every generated rule has.
	field string
	// code returns the field's value as of [Field], or nil to leave the field
	// out. It is nil itself if the parsed value is such a value.
	code func(parsed any) any
	// behind puts the field behind those of all options that do not have it, so
	// that a generated rule has the order of runtime.Rule.
	behind bool
	// unset is the value that rategen list shows where a directive does not
	// have the option, or nil for none. It may be a method of the settings.
	unset any
	// brief is what rategen list says of a limit beside its max, or "". It is nil for an
	// option that it does not tell, or shows in a column.
	brief func(*Settings) string
	// explain is what rategen explain says. It is nil for an option that other rows speak
	// of, or that names something.
	explain explanations
}

// read reads a value, by parse or as a constant.
func (o *Option) read(v Value) (any, error) {
	if o.words != nil {
		if value, ok := o.words(v.Text); ok {
			return value, nil
		}
	}
	if o.parse == nil {
		return o.constant.parse(v)
	}
	return o.parse(v)
}

// appliesTo reports whether the option has a meaning for an algorithm.
func (o *Option) appliesTo(name string) bool { return algorithm.RowByName(name).Takes(o.Name) }

// A Field is a field of a generated rule.
type Field struct {
	Name   string
	Option string // that sets it
	// Code is its value: a string, an int64, a [time.Duration], a [Name] or a
	// [Call].
	Code any
}

// Fields returns the fields of the generated rule that options set, in the
// order in which they are written. Those that keep the runtime's default are
// left out.
func (s *Settings) Fields() []Field {
	var first, behind []Field
	for i := range Options {
		o := &Options[i]
		code := s.values[o.Name]
		if o.Name == "algorithm" && code == nil && s.Period() != spec.NoUnit {
			code = s.Algorithm()
		}
		if o.Name == "headroom" && code == nil && s.Has("share") {
			code = int64(-1)
		}
		if o.field == "" || code == nil {
			continue
		}
		if o.code != nil {
			code = o.code(code)
		}
		if code == nil && (s.values[o.Name] != time.Duration(0) || !s.isNamed(o.Name)) { // else another build may have more
			continue
		}
		if o.behind {
			behind = append(behind, Field{o.field, o.Name, code})
		} else {
			first = append(first, Field{o.field, o.Name, code})
		}
	}
	return append(first, behind...)
}

// A Shown is an option of a directive as rategen list shows it.
type Shown struct {
	Name  string
	Value any // a string, an int64 or a []string
}

// A Term is the value of an option in which limits that count together do not differ, or "".
type Term struct{ Name, Value string }

// Terms returns the terms of a limit, in the order of the table and as rategen list shows them.
func (s *Settings) Terms() []Term {
	shown := s.Shown()
	var terms []Term
	for i := range Options {
		if o := &Options[i]; o.counts && o.Name != "rate" || o.perCall || o.Name == "adaptive" {
			t := Term{Name: o.Name}
			if j := slices.IndexFunc(shown, func(s Shown) bool { return s.Name == o.Name }); j >= 0 {
				t.Value = fmt.Sprint(shown[j].Value)
			}
			terms = append(terms, t)
		}
	}
	return terms
}

// Shown returns the options that rategen list shows, in the order of the table.
func (s *Settings) Shown() []Shown {
	var all []Shown
	for i := range Options {
		o := &Options[i]
		v := s.values[o.Name]
		if v == nil && o.appliesTo(s.Algorithm()) {
			v = o.unset
		}
		switch x := v.(type) {
		case nil:
			continue
		case Value:
			v = x.Text
		case []Value:
			v = texts(x)
		case buckets:
			v = x.String()
		case spec.Unit:
			v = x.String()
		case anchor:
			v = x.text
		case time.Duration:
			v = x.String()
		case func(*Settings) time.Duration:
			v = x(s).String()
		case func(*Settings) string:
			v = x(s)
		}
		all = append(all, Shown{o.Name, v})
	}
	return all
}

// Brief says in a few words how many calls are admitted, and how.
func (s *Settings) Brief() string {
	all := []string{s.MaxText() + " per " + s.Per()}
	if s.Plain().Is(algorithm.Lends) {
		all[0] = s.MaxText() + " in flight"
	}
	for i := range Options {
		if o := &Options[i]; o.brief != nil && s.values[o.Name] != nil {
			if text := o.brief(s); text != "" {
				all = append(all, text)
			}
		}
	}
	return strings.Join(all, ", ")
}

// texts returns the texts of values.
func texts(values []Value) []string {
	all := []string{}
	for _, v := range values {
		all = append(all, v.Text)
	}
	return all
}

// likelyOption returns the name of the option that was probably meant, or "".
func likelyOption(written string) string {
	word := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(written))
	for _, o := range Options {
		if slices.Contains(strings.Fields(o.guesses), word) {
			return o.Name
		}
	}
	return nearest.Name(written, optionNames)
}

// optionNamed returns the row of an option, or nil.
func optionNamed(name string) *Option {
	i := slices.IndexFunc(Options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return nil
	}
	return &Options[i]
}

var optionNames = func() []string {
	var names []string
	for _, o := range Options {
		names = append(names, o.Name)
	}
	return names
}()
