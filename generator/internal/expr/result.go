package expr

import (
	"go/types"

	"github.com/rategen/rategen/generator/internal/directive"
)

// Integer checks an expression that must give an integer that fits an int64.
func (s *Scope) Integer(option string, v directive.Value, m *Signature) *Expr {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	b, ok := e.Type.Underlying().(*types.Basic)
	isRune := ok && b.Kind() == types.UntypedRune
	switch {
	case !ok || b.Info()&types.IsInteger == 0 || isRune:
		s.report.At(e.Source.Pos, "%s: %s is of type %s, not an integer", e.Option, e.Source.Text, e.typeName()).Over(e.Source.Text)
		return nil
	case e.Const == nil && (b.Kind() == types.Uint || b.Kind() == types.Uint64 || b.Kind() == types.Uintptr):
		s.report.At(e.Source.Pos, "%s: %s is of type %s, which may not fit an int64: convert it, as in int64(%s)", e.Option, e.Source.Text, e.typeName(), e.Source.Text).Over(e.Source.Text)
		return nil
	}
	return e
}

// Boolean checks an expression that must give a boolean that is not constant.
func (s *Scope) Boolean(option string, v directive.Value, m *Signature) *Expr {
	e := s.check(option, v, m)
	if e == nil {
		return nil
	}
	if b, ok := e.Type.Underlying().(*types.Basic); !ok || b.Info()&types.IsBoolean == 0 {
		s.report.At(e.Source.Pos, "%s: %s is of type %s, not a boolean", e.Option, e.Source.Text, e.typeName()).Over(e.Source.Text)
		return nil
	}
	if e.Const != nil {
		s.report.At(e.Source.Pos, "%s: %s is always %s: remove the option, or the directive", e.Option, e.Source.Text, e.Const).Over(e.Source.Text)
		return nil
	}
	return e
}
