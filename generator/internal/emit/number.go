package emit

import (
	"cmp"
	"fmt"
	"go/types"

	"github.com/dave/jennifer/jen"

	"github.com/rategen/rategen/generator/internal/expr"
)

// numbers returns the limit with its cost and max.
func (a *admission) numbers(l *limit, key string) *jen.Statement {
	arg := jen.Nil()
	if key != "" {
		arg = jen.Id(key)
	}
	facts := l.known()
	cost, maximum := a.number(l.Cost, facts, key, "cost", "1"), a.number(l.Max, facts, key, "maximum", "0")
	built := jen.Id(l.Rule.VarName).Dot("Limit").Call(arg)
	if len(l.Share) > 0 {
		built.Dot("WithShare").Call(a.share(l, facts))
	}
	if maximum != nil {
		built.Dot("WithMax").Call(maximum)
	}
	if cost != nil {
		built.Dot("WithCost").Call(cost)
	}
	if zone, anchor := a.period(l, facts, key); anchor != nil {
		built.Dot("WithPeriod").Call(zone, anchor)
	}
	return built
}

// known returns what is known of the call where the numbers of a limit stand.
func (l *limit) known() expr.Facts {
	if len(l.when.reasons) > 0 { // they may stand where none holds
		return expr.Facts{}
	}
	return l.when.facts
}

// share returns the share of a call and its weight. If that cannot be evaluated the share is invalid.
func (a *admission) share(l *limit, facts expr.Facts) (share, weight jen.Code) {
	name := a.names.pick("share")
	a.keyParts(l.Share, facts, name, a.runtime("NewKey").Call())
	if l.Weight == nil {
		return jen.Id(name), jen.Lit(1)
	}
	return jen.Id(name), a.number(l.Weight, facts, name, "weight", "1")
}

// period returns the time zone and the anchor of a limit of which a call brings one, and of
// another one nothing.
func (a *admission) period(l *limit, facts expr.Facts, key string) (zone, anchor jen.Code) {
	if l.Zone == nil && l.Anchor == nil {
		return nil, nil
	}
	zone = jen.Lit(l.Rule.Zone())
	if l.Zone != nil {
		zone = a.string(l.Zone, facts, key, "zone")
	}
	if anchor = a.number(l.Anchor, facts, key, "anchor", "0"); anchor == nil {
		anchor = jen.Op(fmt.Sprint(cmp.Or(l.Rule.Anchor(), int64(l.Rule.Period().First()))))
	}
	return zone, anchor
}

// string returns a text as number returns a cost.
func (a *admission) string(x *expr.Expr, facts expr.Facts, key, name string) jen.Code {
	return a.local(x, facts, key, name, jen.Lit(""), func() jen.Code { return a.converted(x, types.String) })
}

// number returns a cost or max as an int64.
func (a *admission) number(x *expr.Expr, facts expr.Facts, key, name, fallback string) jen.Code {
	if x == nil {
		return nil
	}
	return a.local(x, facts, key, name, jen.Id("int64").Call(jen.Op(fallback)), func() jen.Code { return a.int64(x) })
}

// local returns the value of an expression. One that needs steps is put into a variable first; if it
// cannot be evaluated the key becomes invalid.
func (a *admission) local(x *expr.Expr, facts expr.Facts, key, name string, fallback jen.Code, value func() jen.Code) jen.Code {
	lowered := x.Lower(facts)
	if len(lowered.Steps) == 0 {
		return value()
	}
	local := a.names.pick(name)
	a.add(jen.Id(local).Op(":=").Add(fallback))
	a.add(a.guarded(lowered, a.invalid(x, key), func() []jen.Code {
		return []jen.Code{jen.Id(local).Op("=").Add(value())}
	})...)
	return jen.Id(local)
}

// int64 writes an integer expression as an int64.
func (a *admission) int64(x *expr.Expr) jen.Code {
	if x.IsFixed() {
		return jen.Op(a.constant(x))
	}
	return a.converted(x, types.Int64)
}

// converted writes an expression as a basic type.
func (a *admission) converted(x *expr.Expr, kind types.BasicKind) jen.Code {
	value := jen.Op(a.text(x, a.names))
	if b, ok := types.Unalias(x.Type).(*types.Basic); !ok || b.Kind() != kind {
		value = jen.Id(types.Typ[kind].Name()).Call(value)
	}
	return value
}
