package expr

import (
	"go/constant"
	"go/types"
	"time"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/gotypes"
)

// Constant checks an expression that must be constant: a time.Duration, or else an
// integer. It reports one that is not, and returns nil.
func (s *Scope) Constant(option string, v directive.Value, isDuration bool) *Expr {
	e := s.check(option, v, &Signature{Name: "of the directive"})
	if e == nil {
		return nil
	}
	isInteger := gotypes.IsBasic(e.Type, types.IsInteger)
	if isDuration && !e.IsDuration() && isInteger {
		return s.refused(e, "%s is of type %s, not time.Duration: write its unit, as in %s*time.Second", v.Text, e.typeName(), v.Text)
	}
	if isDuration && !e.IsDuration() {
		return s.refused(e, "%s is of type %s, not time.Duration", v.Text, e.typeName())
	}
	if !isInteger || !isDuration && e.IsDuration() {
		return s.refused(e, "%s is of type %s, not an integer", v.Text, e.typeName())
	}
	if e.Const == nil {
		return s.refused(e, "%s is not constant, and all calls of a key must agree on it: declare it with const", v.Text)
	}
	if _, exact := constant.Int64Val(constant.ToInt(e.Const)); !exact {
		return s.refused(e, "%s is %s, which does not fit an int64", v.Text, e.Const)
	}
	return e
}

// IsDuration reports whether the expression is a time.Duration.
func (e *Expr) IsDuration() bool { return gotypes.IsNamed(e.Type, "time", "Duration") }

// Duration checks an expression that must give a time.Duration which is not constant.
func (s *Scope) Duration(option string, v directive.Value, m *Signature) *Expr {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	hint := ""
	if gotypes.IsNamed(e.Type, "time", "Time") {
		hint = ": write time.Until(" + v.Text + ")"
	} else if e.IsDuration() && e.Const != nil {
		return s.refused(e, "%s is always %s: write what depends on the results, such as a function of #err", v.Text, time.Duration(e.Int64()))
	} else if e.IsDuration() {
		return e
	}
	return s.refused(e, "%s is of type %s, not time.Duration%s", v.Text, e.typeName(), hint)
}

// Int64 returns the value of a constant that fits an int64.
func (e *Expr) Int64() int64 {
	n, _ := constant.Int64Val(constant.ToInt(e.Const))
	return n
}
