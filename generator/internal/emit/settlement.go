package emit

import (
	"fmt"
	"go/ast"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// endedBody writes a method some of whose charges may change when the call is over, or
// whose results may hold calls back. Its call is in the middle.
func (a *admission) endedBody() []jen.Code {
	pass := a.passOn()
	if len(a.method.Results) == 0 {
		pass = append(pass, jen.Return())
	}
	off := condition{text: "!" + a.enabled}
	var code []jen.Code
	if only := a.only(); only != nil && only.When != nil {
		only.when = a.when(only.When, true)
		h := only.when.headers[0]
		if len(h.before) > 0 {
			code = append([]jen.Code{jen.If(jen.Op(off.String())).Block(pass...)}, h.before...)
			off = condition{}
		}
		off = either(off, h.negated())
	}
	code = append(code, jen.If(jen.Op(off.String())).Block(pass...))
	limits := a.arguments()
	a.take(limits)
	a.call()
	if a.method.Settles() {
		a.settle(limits)
	}
	a.holdOff()
	a.returnResults()
	return append(code, a.code...)
}

// giveBack returns the deferred call that gives permits back. Limits that are
// settled by then are so in one go.
func (a *admission) giveBack(limits []jen.Code) jen.Code {
	if a.method.Settles() {
		return jen.Defer().Func().Params().Block(a.settleLater(limits)).Call()
	}
	return jen.Defer().Add(a.settleLater(limits))
}

func (a *admission) settleLater(limits []jen.Code) jen.Code {
	return a.limiter.Clone().Dot("SettleLater").Call(append([]jen.Code{a.ctx, jen.Id(a.decision)}, limits...)...)
}

// call adds the call of the wrapped method, its results put into variables.
func (a *admission) call() {
	var results []jen.Code
	assign := "="
	for _, p := range a.method.Results {
		name := a.names.params[p]
		if name != a.names.params[a.method.Refusal] {
			assign = ":="
		}
		results = append(results, jen.Id(name))
	}
	if len(results) == 0 {
		a.add(a.next)
		return
	}
	a.add(jen.List(results...).Op(assign).Add(a.next))
}

func (a *admission) returnResults() {
	var results []jen.Code
	for _, p := range a.method.Results {
		results = append(results, jen.Id(a.names.params[p]))
	}
	if len(results) > 0 {
		a.add(jen.Return(results...))
	}
}

// index settles where the i-th limit is in the slice that is being built; sure
// says that all before it are in the slice.
func (a *admission) index(l *limit, limits string, i int, sure bool) {
	index := fmt.Sprint(i)
	if !sure {
		index = a.names.pick("index")
		a.add(jen.Id(index).Op(":=").Id("len").Call(jen.Id(limits)))
	}
	l.place = limits + "[" + index + "]"
}

// settle adds what corrects the charges of the call that is over.
func (a *admission) settle(limits []jen.Code) {
	groups := a.groups()
	atOnce := len(groups) == 1 && !a.method.HasPermit()
	for _, group := range groups {
		a.add(a.settled(group[0], func(value jen.Code) []jen.Code {
			if atOnce && len(limits) == len(a.limits) {
				return []jen.Code{a.settleLater(a.withSettled(group, value))}
			}
			var code []jen.Code
			for _, l := range group {
				code = append(code, jen.Op(l.place).Op("=").Op(l.place).Dot("WithSettled").Call(value))
			}
			if atOnce {
				code = append(code, a.settleLater(limits))
			}
			return code
		})...)
	}
	if !atOnce && !a.method.HasPermit() {
		a.add(a.settleLater(limits))
	}
}

// withSettled returns the method's limits as arguments, those of a group with
// their settled cost.
func (a *admission) withSettled(group []*limit, value jen.Code) []jen.Code {
	var args []jen.Code
	for _, l := range a.limits {
		arg := jen.Op(l.place)
		if slices.Contains(group, l) {
			arg.Dot("WithSettled").Call(value)
		}
		args = append(args, arg)
	}
	return args
}

// groups returns the limits that are settled. Those that are refunded on the
// same condition, and always apply, are together.
func (a *admission) groups() [][]*limit {
	var groups [][]*limit
	byRefund := map[string]int{}
	for _, l := range a.limits {
		if !l.Settles() {
			continue
		}
		if l.Settle == nil && l.applies == "" && !a.canFail(l.Refund) {
			text := a.text(l.Refund, a.names)
			if i, ok := byRefund[text]; ok {
				groups[i] = append(groups[i], l)
				continue
			}
			byRefund[text] = len(groups)
		}
		groups = append(groups, []*limit{l})
	}
	return groups
}

// settled returns what has a limit's charge refunded or settled: with says how,
// for a cost.
func (a *admission) settled(l *limit, with func(value jen.Code) []jen.Code) []jen.Code {
	var applies []header
	if l.applies != "" {
		applies = within(nil, plain(l.applies))
	}
	switch {
	case l.Settle == nil:
		return nested(a.refund(l.Refund, applies), with(jen.Lit(0)))
	case l.Refund == nil:
		code, _ := a.settledAt(l.Settle, applies, with)
		return code
	}
	return nested(applies, a.refundedOrSettled(l, with))
}

// settledAt has a charge settled where its cost can be evaluated and is not negative.
// It also reports whether the code is one if statement.
func (a *admission) settledAt(x *expr.Expr, headers []header, with func(value jen.Code) []jen.Code) ([]jen.Code, bool) {
	lowered := x.Lower(expr.Facts{})
	if expr.HasShort(lowered.Steps) {
		return a.evaluable(lowered, headers, func() []jen.Code {
			known, value := a.known(x)
			return nested(known, with(value))
		}), false
	}
	headers = chain(headers, a.headers(x, lowered.Steps))
	known, value := a.known(x)
	headers = chain(headers, known)
	return nested(headers, with(value)), len(headers) > 0 && len(headers[0].before) == 0 && !headers[0].isZero()
}

// known returns the if within which a settled cost is known, and the cost. A negative
// one says that it is not.
func (a *admission) known(x *expr.Expr) ([]header, jen.Code) {
	switch {
	case !x.MayBeNegative():
		return nil, a.int64(x)
	case a.calls(x):
		value := a.int64(x)
		cost := a.names.pick("cost")
		return []header{{init: []jen.Code{jen.Id(cost).Op(":=").Add(value)}, condition: condition{text: cost + " >= 0"}}}, jen.Id(cost)
	}
	return []header{{condition: condition{text: a.headerText(x, x.Node, a.names) + " >= 0"}}}, a.int64(x)
}

// calls reports whether an expression calls something that is in no variable.
func (a *admission) calls(x *expr.Expr) bool {
	found := false
	ast.Inspect(x.Node, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && a.names.bind(e) != "" {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok {
			f := x.Info.Types[call.Fun]
			found = found || f.IsValue() && !f.IsBuiltin()
		}
		return !found
	})
	return found
}

// refundedOrSettled settles what is not refunded.
func (a *admission) refundedOrSettled(l *limit, with func(value jen.Code) []jen.Code) []jen.Code {
	refund := a.refund(l.Refund, nil)
	var code []jen.Code
	switch {
	case len(refund) == 1 && len(refund[0].init) == 0: // it is a variable already
		code, refund[0].before = refund[0].before, nil
	case isNested(refund):
		refunded := a.names.pick("refunded")
		code = append(code, jen.Id(refunded).Op(":=").False())
		code = append(code, nested(refund, []jen.Code{jen.Id(refunded).Op("=").True()})...)
		refund = within(nil, plain(refunded))
	}
	otherwise, isIf := a.settledAt(l.Settle, nil, with)
	head := jen.If(jen.Op(refund[0].String())).Block(with(jen.Lit(0))...).Else()
	if isIf {
		return append(code, head.Add(otherwise...))
	}
	return append(code, head.Block(otherwise...))
}
