package expr

import (
	"go/constant"
	"go/types"

	"github.com/rategen/rategen/generator/internal/directive"
)

// Constant checks an expression that must be constant: a time.Duration, or else an
// integer. It reports one that is not, and returns no value.
func (s *Scope) Constant(option string, v directive.Value, isDuration bool) (int64, bool) {
	e := s.check(option, v, &Signature{Name: "of the directive"})
	if e == nil {
		return 0, false
	}
	report := s.reporter(option)
	named, _ := types.Unalias(e.Type).(*types.Named)
	ofTime := named != nil && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Duration"
	b, _ := e.Type.Underlying().(*types.Basic)
	isInteger := b != nil && b.Info()&types.IsInteger != 0
	switch {
	case isDuration && !ofTime && isInteger:
		report(v.Pos, "%s is of type %s, not time.Duration: write its unit, as in %s*time.Second", v.Text, e.typeName(), v.Text).Over(v.Text)
		return 0, false
	case isDuration && !ofTime:
		report(v.Pos, "%s is of type %s, not time.Duration", v.Text, e.typeName()).Over(v.Text)
		return 0, false
	case !isInteger, !isDuration && ofTime:
		report(v.Pos, "%s is of type %s, not an integer", v.Text, e.typeName()).Over(v.Text)
		return 0, false
	case e.Const == nil:
		report(v.Pos, "%s is not constant, and all calls of a key must agree on it: declare it with const", v.Text).Over(v.Text)
		return 0, false
	}
	n, exact := constant.Int64Val(constant.ToInt(e.Const))
	if !exact {
		report(v.Pos, "%s is %s, which does not fit an int64", v.Text, e.Const).Over(v.Text)
	}
	return n, exact
}
