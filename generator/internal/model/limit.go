package model

import (
	"go/constant"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
)

// A Limit is a rule applied to the calls of a method, with the key, cost and
// max of a call.
type Limit struct {
	Rule  *Rule
	Parts []*expr.KeyPart
	Cost  *expr.Expr // nil: 1
	Max   *expr.Expr // nil unless it depends on the call
	When  *expr.Expr // nil: always
}

// EachExpr visits the expressions of a limit that depend on the call.
func (l *Limit) EachExpr(visit func(*expr.Expr)) {
	for _, p := range l.Parts {
		visit(p.Expr)
	}
	for _, e := range []*expr.Expr{l.Cost, l.Max, l.When} {
		if e != nil {
			visit(e)
		}
	}
}

// newLimit checks a rule's expressions against the parameters of a method. The
// rule learns whether its max is constant.
func (b *Builder) newLimit(m *Method, r *Rule, scope *expr.Scope) *Limit {
	l := &Limit{Rule: r}
	for _, v := range r.Key() {
		if part := scope.Part(v, &m.Signature); part != nil {
			l.Parts = append(l.Parts, part)
		}
	}
	most := b.applyMax(l, m, scope)
	if burst := r.Burst(); burst > 0 {
		most = burst
	}
	b.applyCost(l, m, scope, most)
	if v := r.Expr("when"); v != nil {
		l.When = scope.Boolean("when", *v, &m.Signature)
	}
	return l
}

// applyMax checks the max of a limit and returns the largest cost that a call
// may have.
func (b *Builder) applyMax(l *Limit, m *Method, scope *expr.Scope) int64 {
	v := l.Rule.Expr("max")
	if v == nil {
		return directive.DefaultMax
	}
	bound := directive.MostOf(l.Rule.Algorithm())
	e := scope.Integer("max", *v, &m.Signature)
	if e == nil {
		return bound
	}
	switch n, exact := int64Of(e.Const); {
	case e.Const == nil:
		l.Rule.Dynamic, l.Max = true, e
	case !exact || n < 1 || n > bound:
		b.Report.At(v.Pos, "max: %s is not between 1 and %d", e.Const, bound)
	default:
		l.Rule.Max = e
		return n
	}
	return bound
}

// applyCost checks the cost of a limit.
func (b *Builder) applyCost(l *Limit, m *Method, scope *expr.Scope, most int64) {
	v := l.Rule.Expr("cost")
	if v == nil {
		return
	}
	e := scope.Integer("cost", *v, &m.Signature)
	if e == nil {
		return
	}
	algorithm := l.Rule.Algorithm()
	bound := directive.MostCost(algorithm)
	switch n, exact := int64Of(e.Const); {
	case e.Const == nil:
		l.Cost = e
	case constant.Sign(e.Const) == 0:
		b.Report.At(v.Pos, "cost: a cost of 0 charges nothing: remove the limit")
	case !exact || n < 1 || n > most:
		b.Report.At(v.Pos, "cost: %s is not between 1 and %d, the most that the limit admits at once", e.Const, most)
	case n > bound:
		b.Report.At(v.Pos, "cost: %d is above %d, the most that one call may charge to a %s: use algorithm=sliding-counter or algorithm=token-bucket", n, bound, algorithm)
	case n != 1:
		l.Cost = e
	}
}

func int64Of(v constant.Value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(v))
}
