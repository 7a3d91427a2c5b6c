// Package harness compares methods of wrappers with their expressions in plain Go.
package harness

import (
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/rategen/rategen/runtime"
)

// A Case is a method with limits. Each of its expressions is a function of the
// parameters and results, which gives its value.
type Case struct {
	Text                                     string
	When, Key, Cost, Max, Settle, Hold, Deny func() any
	Refund, Lenient                          func() any
	Call                                     func(*runtime.Limiter) error
}

var trace []string

// Call tells that a function is called with arguments.
func Call(name string, args ...any) { trace = append(trace, fmt.Sprint(name, args)) }

// Boom panics for some numbers.
func Boom(n int) {
	if n%53 == 7 {
		panic("boom")
	}
}

// Is evaluates an operand, which is false if it cannot be.
func Is(operand func() bool) (is bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(goruntime.Error); !ok {
				panic(r)
			}
			is = false
		}
	}()
	return operand()
}

// An outcome is what evaluating something gave.
type outcome struct {
	value any
	fault bool   // a panic that Go itself has made
	panic string // another one
	trace []string
}

func run(f func() any) (o outcome) {
	trace = nil
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(goruntime.Error); ok {
				o.fault = true
			} else {
				o.panic = fmt.Sprint(r)
			}
			o.value = r
		}
		o.trace = trace
	}()
	return outcome{value: f()}
}

func text(v any) string {
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.Int, reflect.Int64:
		return fmt.Sprint(x.Int())
	}
	return fmt.Sprint(v)
}

// Counts are of comparisons, by what plain Go did.
type Counts struct{ Values, Faults, Panics int }

// Compare says how a method differs from its expressions, or "".
func (c *Case) Compare(counts *Counts) string {
	want := c.expected()
	limiter := &runtime.Limiter{Refuses: c.Deny != nil}
	got := run(func() any { return c.Call(limiter) })
	switch {
	case got.fault:
		return fmt.Sprintf("panics: %v", got.value)
	case want.panics:
		counts.Panics++ // or not, if there is a fault, too
		return ""
	case want.faults:
		counts.Faults++
	default:
		counts.Values++
	}
	switch {
	case got.panic != "" && want.faults:
		return "" // what Go calls before it finds the fault is not specified
	case got.panic != "":
		return "panics: " + got.panic
	}
	if seen := c.observed(limiter, got); seen.String() != want.String() {
		return fmt.Sprintf("got  %s\nwant %s", seen, want)
	}
	if want.evaluated > 1 { // options are evaluated in any order
		slices.Sort(got.trace)
		slices.Sort(want.trace)
	}
	if !want.faults && !slices.Equal(got.trace, want.trace) {
		return fmt.Sprintf("calls %s\nwant  %s", strings.Join(got.trace, " "), strings.Join(want.trace, " "))
	}
	return ""
}

// A result is what a method does.
type result struct {
	applies, invalid   bool
	key, returned      string
	cost, max, settled int64
	held               int64

	faults, panics bool
	evaluated      int
	trace          []string
}

func (r *result) String() string {
	switch {
	case !r.applies:
		return "not limited"
	case r.invalid:
		return fmt.Sprint("invalid, settled ", r.settled, ", held ", r.held)
	}
	return fmt.Sprintf("key %s, cost %d, max %d, settled %d, held %d, returned %s", r.key, r.cost, r.max, r.settled, r.held, r.returned)
}

// expected evaluates the expressions in plain Go.
func (c *Case) expected() *result {
	r := &result{applies: true, cost: 1, settled: -1}
	value := func(f func() any, set func(any), fault func()) {
		if f == nil || !r.applies {
			return
		}
		r.evaluated++
		o := run(f)
		r.trace = append(r.trace, o.trace...)
		switch {
		case o.fault:
			r.faults = true
			fault()
		case o.panic != "":
			r.panics = true
		default:
			set(o.value)
		}
	}
	invalid := func() { r.invalid = true }
	value(c.When, func(v any) { r.applies = reflect.ValueOf(v).Bool() }, invalid)
	value(c.Key, func(v any) { r.key = text(v) }, invalid)
	value(c.Cost, func(v any) { r.cost = reflect.ValueOf(v).Int() }, invalid)
	value(c.Max, func(v any) { r.max = reflect.ValueOf(v).Int() }, invalid)
	value(c.Deny, func(v any) { r.returned = text(v) }, func() { r.returned = runtime.ErrRefused.Error() })
	value(c.Refund, func(v any) {
		if reflect.ValueOf(v).Bool() {
			r.settled = 0
		}
	}, func() {
		if o := run(c.Lenient); o.panic != "" {
			r.panics = true
		} else if o.value.(bool) {
			r.settled = 0
		}
	})
	if r.settled != 0 {
		value(c.Settle, func(v any) {
			if n := reflect.ValueOf(v).Int(); n >= 0 { // else the cost is not known
				r.settled = n
			}
		}, func() {})
	}
	value(c.Hold, func(v any) { r.held = max(0, reflect.ValueOf(v).Int()) }, func() {})
	return r
}

// observed says what the limiter has been asked.
func (c *Case) observed(l *runtime.Limiter, o outcome) *result {
	r := &result{settled: -1, held: int64(l.Held)}
	for _, limit := range l.Taken {
		if limit.Rule.Name == "plain" {
			continue
		}
		r.applies, r.cost, r.max = true, limit.Cost, limit.Max
		if r.max == 0 && c.Max != nil { // a constant
			r.max = limit.Rule.Max
		}
		if limit.Key != nil {
			r.invalid = limit.Key.Invalid
			for _, p := range limit.Key.Parts {
				r.key = text(p)
			}
		}
	}
	for _, cost := range l.Later {
		if cost >= 0 {
			r.settled = cost
		}
	}
	if err, ok := o.value.(error); ok && l.Refuses {
		r.returned = err.Error()
	}
	return r
}
