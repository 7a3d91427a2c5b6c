package model

import (
	"go/constant"
	"slices"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

// A Limit is a rule applied to the calls of a method, with the key, cost and
// max of a call.
type Limit struct {
	Rule  *Rule
	Parts []*expr.KeyPart
	Cost  *expr.Expr // nil: 1
	Max   *expr.Expr // nil unless it depends on the call

	Share  []*expr.KeyPart // of the call; none: the limit is not divided
	Weight *expr.Expr      // of the share; nil: 1

	When *expr.Expr // nil: always

	// Zone and Anchor are those of a period of the calendar. Nil: the rule's.
	Zone, Anchor *expr.Expr

	// Refund and Settle change the charge when the call is over.
	Refund *expr.Expr // gives it back if true; nil: never
	Settle *expr.Expr // is the real cost; nil: Cost

	Meter *expr.Expr // what each message of a stream costs; nil: nothing

	Hold *expr.Expr // for how long nobody is to call once the call is over; nil: not at all

	Deny *expr.Expr // what a call returns that it refuses; nil: the error, or what Handler says
}

// Settles reports whether the charge may change when the call is over.
func (l *Limit) Settles() bool { return l.Refund != nil || l.Settle != nil }

// HasEnd reports whether something is evaluated when the call is over.
func (l *Limit) HasEnd() bool { return l.Settles() || l.Hold != nil || l.Meter != nil }

// IsPermit reports whether a permit is to be given back when the call is over.
func (l *Limit) IsPermit() bool { return l.Rule.Plain().Is(algorithm.Lends) }

// IsHeld reports whether what the call is charged is renewed while it runs, and so is to be
// given back or settled when it is over.
func (l *Limit) IsHeld() bool { return l.IsPermit() || l.Rule.Reserve() > 0 }

// EachExpr visits the expressions of a limit that depend on the call.
func (l *Limit) EachExpr(visit func(*expr.Expr)) {
	for _, p := range slices.Concat(l.Parts, l.Share) {
		visit(p.Expr)
	}
	for _, e := range []*expr.Expr{l.Weight, l.Cost, l.Max, l.Zone, l.Anchor, l.When, l.Refund, l.Settle, l.Meter, l.Hold, l.Deny} {
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
		if part := scope.Part("key", v, &m.Signature); part != nil {
			l.Parts = append(l.Parts, part)
		}
	}
	most := b.applyMax(l, m, scope)
	b.applyShare(l, m, scope)
	if burst := r.Burst(); burst > 0 {
		most = burst
	}
	most = b.applyLease(l, most)
	b.applyCost(l, m, scope, most)
	if v := r.Expr("tz"); v != nil {
		l.Zone = scope.Text("tz", *v, &m.Signature)
	}
	if v := r.Expr("anchor"); v != nil {
		l.Anchor = scope.Integer("anchor", *v, &m.Signature)
	}
	if v := r.Expr("when"); v != nil {
		l.When = scope.Boolean("when", *v, &m.Signature)
	}
	if v := r.Expr("refund"); v != nil {
		l.Refund = scope.Boolean("refund", *v, m.After())
	}
	b.applySettle(l, m, scope)
	if r.Reserve() > 0 && r.Plain().Meets(algorithm.Return) && r.Expr("settle") == nil && r.Expr("refund") == nil && r.Expr("meter") == nil {
		b.Report.At(r.Place("reserve"), "reserve: what a call is charged is final, so nothing of it is a reservation: remove the option, or write settle=, refund= or meter=")
	}
	if r.Debt() != "" && r.Plain().Lacks["debt"] == "" && r.Expr("settle") == nil {
		b.Report.At(r.Place("debt"), "debt: no call costs more than it was charged before: remove the option, or write settle=")
	}
	if v := r.Expr("meter"); v != nil && m.Stream != nil {
		b.applyMeter(l, *v, m, scope)
	}
	if v := r.Expr("hold"); v != nil {
		l.Hold = scope.Duration("hold", *v, m.After())
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
	bound := l.Rule.Plain().Most
	e := scope.Integer("max", *v, &m.Signature)
	if e == nil {
		return bound
	}
	n, exact := int64Of(e.Const)
	switch {
	case e.Const == nil:
		l.Rule.Dynamic, l.Max = true, e
	case !exact || n < 1 || n > bound:
		b.Report.At(v.Pos, "max: %s is not between 1 and %d", e.Const, bound)
	case !e.IsFixed():
		l.Rule.Dynamic, l.Max = true, e
		return n
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
	bound := l.Rule.Plain().MostCost
	n, exact := int64Of(e.Const)
	switch {
	case e.Const == nil:
		l.Cost = e
	case constant.Sign(e.Const) == 0:
		b.Report.At(v.Pos, "cost: a cost of 0 charges nothing: remove the limit")
	case !exact || n < 1 || n > most:
		b.Report.At(v.Pos, "cost: %s is not between 1 and %d, the most that the limit admits at once", e.Const, most)
	case n > bound && l.IsPermit():
		b.Report.At(v.Pos, "cost: %d is above %d, the most permits that one call may hold", n, bound)
	case n > bound:
		b.Report.At(v.Pos, "cost: %d is above %d, the most that one call may charge to a %s: use algorithm=sliding-counter or algorithm=token-bucket", n, bound, l.Rule.Algorithm())
	case n != 1:
		l.Cost = e
	}
}

// applySettle checks the settled cost of a limit.
func (b *Builder) applySettle(l *Limit, m *Method, scope *expr.Scope) {
	v := l.Rule.Expr("settle")
	if v == nil {
		return
	}
	if l.Settle = scope.Integer("settle", *v, m.After()); l.Settle == nil || l.Settle.Const == nil {
		return
	}
	bound := l.Rule.Plain().MostCost
	if l.Rule.Plain().Stores() {
		bound += constantCost(l, bound) // that much on top
	}
	largest := max(bound, spec.MaxCount)
	n, exact := int64Of(l.Settle.Const)
	switch {
	case constant.Sign(l.Settle.Const) < 0:
		b.Report.At(v.Pos, "settle: a cost of %s is negative: write what the call cost, 0 to give all back", l.Settle.Const)
	case constant.Sign(l.Settle.Const) == 0:
		b.Report.At(v.Pos, "settle: 0 gives every charge back: remove the limit, or write algorithm=%s for a limit on calls in flight", algorithm.Permits.Row().Name)
	case !exact || n > largest:
		b.Report.At(v.Pos, "settle: %s is above %d, the largest cost", l.Settle.Const, largest)
	case n > bound:
		b.Report.At(v.Pos, "settle: %d is above %d, the most that one call may charge to a %s: use algorithm=sliding-counter or algorithm=token-bucket", n, bound, l.Rule.Algorithm())
	case constantCost(l, 0) == n:
		b.Report.At(v.Pos, "settle: %d is the cost already: remove the option", n)
	}
}

// constantCost returns the constant cost of a limit, or else another.
func constantCost(l *Limit, other int64) int64 {
	if l.Cost == nil {
		return 1
	}
	if n, exact := int64Of(l.Cost.Const); exact {
		return n
	}
	return other
}

func int64Of(v constant.Value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(v))
}
