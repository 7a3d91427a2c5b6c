package expr

import (
	"go/constant"
	"go/types"
	"time"

	"github.com/rategen/rategen/generator/internal/directive"
)

// Constant checks an expression that must be constant: a time.Duration, or else an
// integer. It reports one that is not, and returns nil.
func (s *Scope) Constant(option string, v directive.Value, isDuration bool) *Expr {
	e := s.check(option, v, &Signature{Name: "of the directive"})
	if e == nil {
		return nil
	}
	report := s.reporter(option)
	ofTime := isOfTime(e.Type, "Duration")
	b, _ := e.Type.Underlying().(*types.Basic)
	isInteger := b != nil && b.Info()&types.IsInteger != 0
	if isDuration && !ofTime && isInteger {
		report(v.Pos, "%s is of type %s, not time.Duration: write its unit, as in %s*time.Second", v.Text, e.typeName(), v.Text).Mark(v.Text)
		return nil
	}
	if isDuration && !ofTime {
		report(v.Pos, "%s is of type %s, not time.Duration", v.Text, e.typeName()).Mark(v.Text)
		return nil
	}
	if !isInteger || !isDuration && ofTime {
		report(v.Pos, "%s is of type %s, not an integer", v.Text, e.typeName()).Mark(v.Text)
		return nil
	}
	if e.Const == nil {
		report(v.Pos, "%s is not constant, and all calls of a key must agree on it: declare it with const", v.Text).Mark(v.Text)
		return nil
	}
	if _, exact := constant.Int64Val(constant.ToInt(e.Const)); !exact {
		report(v.Pos, "%s is %s, which does not fit an int64", v.Text, e.Const).Mark(v.Text)
		return nil
	}
	return e
}

// IsDuration reports whether the expression is a time.Duration.
func (e *Expr) IsDuration() bool { return isOfTime(e.Type, "Duration") }

// Duration checks an expression that must give a time.Duration which is not constant.
func (s *Scope) Duration(option string, v directive.Value, m *Signature) *Expr {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	report, hint := s.reporter(option), ""
	if isOfTime(e.Type, "Time") {
		hint = ": write time.Until(" + v.Text + ")"
	} else if isOfTime(e.Type, "Duration") && e.Const != nil {
		report(v.Pos, "%s is always %s: write what depends on the results, such as a function of #err", v.Text, time.Duration(e.Int64())).Mark(v.Text)
		return nil
	} else if isOfTime(e.Type, "Duration") {
		return e
	}
	report(v.Pos, "%s is of type %s, not time.Duration%s", v.Text, e.typeName(), hint).Mark(v.Text)
	return nil
}

// Int64 returns the value of a constant that fits an int64.
func (e *Expr) Int64() int64 {
	n, _ := constant.Int64Val(constant.ToInt(e.Const))
	return n
}

// isOfTime reports whether a type is the one of package time with a name.
func isOfTime(t types.Type, name string) bool {
	named, _ := types.Unalias(t).(*types.Named)
	return named != nil && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == name
}
