package directive

import (
	"cmp"
	"errors"
	"go/token"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/generator/internal/diag"
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/nearest"
	"github.com/rategen/rategen/internal/spec"
)

// Settings are the options of a directive, with the meaning of their values.
// Expressions are still text; they are checked for each method that the limit
// applies to.
type Settings struct {
	Pos    token.Pos            // of the directive
	End    token.Pos            // behind it
	values map[string]any       // by option, as its row has parsed them
	places map[string]token.Pos // of these values
	// written are the options that the directive itself has, and not by way of rate.
	written map[string]bool
	options []assignment // as they are written
	named   []Constant   // what Go constants have given values to
	where   where
	policy  *Policy // that it uses, or nil

	defaults  *Policy  // of its package, or nil
	byDefault []string // the options that these give it
	leftOut   []string // sentences about those that do not go with its own
}

// where says where a directive stands.
type where int

const (
	onMethod where = iota
	onInterface
	inPolicy
)

// newSettings reads the options of a directive by their rows in [Options]. It
// reports every option that is unknown, repeated, inapplicable or malformed.
func newSettings(d *Directive, at where, report diag.Func) *Settings {
	s := &Settings{Pos: d.Pos, End: d.end, values: map[string]any{}, places: map[string]token.Pos{}, written: map[string]bool{}, options: d.options, where: at}
	for _, a := range d.options {
		s.set(a, report)
	}
	if len(s.Constants()) == 0 && s.Use() == "" {
		s.CheckTogether(report)
	}
	return s
}

// set reads one option.
func (s *Settings) set(a assignment, report diag.Func) {
	row := optionNamed(a.name)
	if row == nil {
		near := likelyOption(a.name)
		hint := didYouMean(near)
		if near == "" {
			hint = ": the options are " + strings.Join(optionNames, ", ")
		}
		d := report(a.pos, "unknown option %q%s", a.name, hint).Mark(a.name)
		if row := optionNamed(near); row != nil {
			if _, err := row.read(a.value); err == nil {
				d.ReplaceBy(near)
			}
		}
		return
	}
	if s.written[a.name] {
		report(a.pos, "option %q is given twice; remove one, or write a second %s line for a second limit", a.name, Prefix).Mark(a.name)
		return
	}
	if row.onInterface && s.where != onInterface {
		report(a.pos, "option %q belongs to the directive of a whole interface; on a method leave it out", a.name).Mark(a.name)
		return
	}
	if row.onMethod && s.where != onMethod {
		report(a.pos, "option %q belongs to the directive of a method; on a whole interface leave it out", a.name).Mark(a.name)
		return
	}
	s.written[a.name] = true
	s.put(row, a, report)
}

// put parses the value of an option. What a rate stands for does not replace what
// the directive has itself, which is an error.
func (s *Settings) put(row *Option, a assignment, report diag.Func) {
	parsed, err := row.read(a.value)
	if err != nil {
		reportValue(a, err, report)
	}
	s.places[a.name], s.values[a.name] = a.value.Pos, parsed
	if r, ok := parsed.(rate); ok && err == nil {
		delete(s.values, a.name)
		for _, part := range r.assignments(a) {
			if !s.written[part.name] {
				s.put(optionNamed(part.name), part, report)
			}
		}
	}
}

// reportValue reports what is wrong with an option's value.
func reportValue(a assignment, err error, report diag.Func) {
	pos, text := a.value.Pos, a.value.Text
	if p := (*partError)(nil); errors.As(err, &p) {
		pos, text = p.pos, p.over
	}
	d := report(pos, "%s: %s", a.name, err)
	c := (*choiceError)(nil)
	if a.value.Exact {
		d.Mark(text)
		if errors.As(err, &c) {
			d.ReplaceBy(nearest.Name(text, c.choices))
		}
	}
}

// CheckTogether reports options that do not go with the directive's others.
func (s *Settings) CheckTogether(report diag.Func) {
	for _, a := range s.options {
		row := optionNamed(a.name)
		if row == nil || !slices.Contains(algorithms, s.Algorithm()) {
			continue
		}
		if row.counts && row.ownOnly && s.Use() != "" && !s.written["prefix"] {
			report(a.pos, "option %q makes other keys, and all limits that use %s count together: add prefix= for a limit that counts apart, or write a limit with it above the interface", a.name, s.Use()).Mark(a.name)
		} else if row.counts && s.Use() != "" && !s.written["prefix"] {
			report(a.pos, "option %q is for the policy %s to say, since all limits that use it count together: write it there, or add prefix= for a limit that counts apart", a.name, s.Use()).Mark(a.name)
		} else if !row.appliesTo(s.Algorithm()) {
			report(a.pos, "option %q has no meaning for %s: leave it out, or write algorithm=%s", a.name, s.Algorithm(), strings.Join(algorithm.Takers(a.name), " or algorithm=")).Mark(a.name)
		} else if row.fits != nil {
			if err := row.fits(s); err != nil {
				report(a.value.Pos, "%s: %s", a.name, err)
			}
		}
	}
}

// get returns the value of an option, or the zero value where it is not given.
func get[T any](s *Settings, name string) T {
	v, _ := s.values[name].(T)
	return v
}

// Has reports whether an option is given, here or by a policy or defaults.
func (s *Settings) Has(name string) bool {
	_, given := s.values[name]
	return given
}

// IsEmpty reports whether nothing could be made of a directive, which is reported.
func (s *Settings) IsEmpty() bool { return len(s.options) == 0 }

// Expr returns the text of an option that is an expression, or nil.
func (s *Settings) Expr(name string) *Value {
	if v, ok := s.values[name].(Value); ok {
		return &v
	}
	return nil
}

// Place returns the position of an option's value, or else of the directive.
func (s *Settings) Place(name string) token.Pos { return cmp.Or(s.places[name], s.Pos) }

// With returns a copy in which an option has another value.
func (s *Settings) With(name string, v any) *Settings {
	changed := *s
	changed.values = map[string]any{}
	maps.Copy(changed.values, s.values)
	changed.values[name] = v
	return &changed
}

// Key returns the parts of the key; none is one budget for all callers.
func (s *Settings) Key() []Value { return get[[]Value](s, "key") }

// LeavesOut reports whether a limit of a whole interface does not apply to a method,
// as except or only says.
func (s *Settings) LeavesOut(method string) bool {
	named := func(option string) bool {
		return slices.ContainsFunc(get[[]Value](s, option), func(v Value) bool { return v.Text == method })
	}
	return named("except") || s.places["only"].IsValid() && !named("only")
}

// Methods returns the methods that an option of a limit of a whole interface names.
func (s *Settings) Methods(option string) []Value { return get[[]Value](s, option) }

// Replaces returns which limits of its interface a method's limit takes the place of:
// the name of one, "all", or "" for none.
func (s *Settings) Replaces() string { return get[string](s, "replace") }

// Prefix and Name return what the directive says, or "".
func (s *Settings) Prefix() string { return get[string](s, "prefix") }
func (s *Settings) Name() string   { return get[string](s, "name") }

// Message returns the text of the error of a refused call, or "" for the runtime's.
func (s *Settings) Message() string { return get[string](s, "message") }

// Storage returns how a sliding log is kept, or "" if the directive leaves
// that open.
func (s *Settings) Storage() string { return get[string](s, "storage") }

// Burst returns the calls that a bucket admits at once, or 0 for the max.
func (s *Settings) Burst() int64 { return get[int64](s, "burst") }

// Share returns the parts of what the limit is divided among; none: it is not divided.
func (s *Settings) Share() []Value { return get[[]Value](s, "share") }

// ShareText returns the parts as a sentence names them, or "".
func (s *Settings) ShareText() string { return List(texts(s.Share()), "and") }

// Headroom returns the calls of the burst that are for light shares, or 0 for a quarter.
func (s *Settings) Headroom() int64 { return get[int64](s, "headroom") }

// Divides reports whether shares divide the limit, those of who uses it perhaps.
func (s *Settings) Divides() bool { return s.Has("share") || s.Has("headroom") }

// Block returns for how long a refused caller stays refused, or 0.
func (s *Settings) Block() time.Duration { return get[time.Duration](s, "block") }

// Lease returns for how long a process may admit by itself what it has charged
// ahead, or 0.
func (s *Settings) Lease() time.Duration { return get[time.Duration](s, "lease") }

// Reserve returns when the charge of a call lapses that is not renewed, or 0.
func (s *Settings) Reserve() time.Duration { return get[time.Duration](s, "reserve") }

// Debt returns what becomes of what calls cost beyond the max, or "".
func (s *Settings) Debt() string { return get[string](s, "debt") }

// Mode returns whether calls are refused.
func (s *Settings) Mode() string { return cmp.Or(get[string](s, "mode"), "enforce") }

// Refuses reports whether calls may be refused, and are not counted only.
func (s *Settings) Refuses() bool { return s.Mode() == "enforce" }

// IsSoft reports whether calls are told that they are over the limit.
func (s *Settings) IsSoft() bool { return s.Mode() == "soft" }

// Adaptive returns the signals that the max adapts to.
func (s *Settings) Adaptive() []string { return get[[]string](s, "adaptive") }

// Window returns the time that the max refers to, or one that no period of the calendar is
// longer than.
func (s *Settings) Window() time.Duration {
	if unit := s.Period(); unit != spec.NoUnit {
		return unit.Longest()
	}
	return cmp.Or(get[time.Duration](s, "window"), time.Duration(s.Plain().Seconds)*time.Second)
}

// Wait returns for how long calls may wait for their turn.
func (s *Settings) Wait() time.Duration { return get[time.Duration](s, "wait") }

// IsQueue reports whether calls stand in line.
func (s *Settings) IsQueue() bool { return s.rule().IsQueue() }

// Waits reports whether calls may wait for their turn, in another build perhaps.
func (s *Settings) Waits() bool { return s.Wait() > 0 || s.isNamed("wait") }

// Algorithm returns how calls are counted.
func (s *Settings) Algorithm() string {
	byDefault := algorithm.LogZSet
	if s.Period() != spec.NoUnit {
		byDefault = algorithm.Calendar
	}
	return cmp.Or(get[string](s, "algorithm"), byDefault.Row().Name)
}

// Plain returns the row of the algorithm, which has what holds whatever else the limit says.
func (s *Settings) Plain() *algorithm.Row { return algorithm.RowByName(s.Algorithm()) }

// Row returns the row of how calls are counted.
func (s *Settings) Row() *algorithm.Row {
	var has algorithm.Need
	for need, is := range map[algorithm.Need]bool{
		algorithm.Packing: s.Storage() == "packed", algorithm.Layers: get[buckets](s, "buckets").fine > 0,
		algorithm.Wait: s.Waits(), algorithm.Period: s.Period() != spec.NoUnit,
		algorithm.Return: s.Reserve() > 0 || s.Debt() == spec.DebtCarry, algorithm.Share: s.Divides(),
	} {
		if is {
			has |= need
		}
	}
	return s.Plain().Choose(has).Row()
}

// Measured reports whether the wrapper has to measure how long calls take.
func (s *Settings) Measured() bool { return slices.Contains(s.Adaptive(), latency) }

// MaxText returns the max as it is written in the directive.
func (s *Settings) MaxText() string {
	if v := s.Expr("max"); v != nil {
		return v.Text
	}
	return defaultMaxText
}
