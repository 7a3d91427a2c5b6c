package emit

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
)

// settledBody writes a method some of whose charges may change when the call is
// over. Its call is in the middle.
func (a *admission) settledBody() []jen.Code {
	off := jen.Op("!").Add(a.limiter).Dot("Enabled").Call()
	when, limits := a.limits()
	if when != nil {
		off.Op("||").Op(negated(when.Node, a.exprString(when, a.names)))
	}
	pass := a.passOn()
	if len(a.method.Results) == 0 {
		pass = append(pass, jen.Return())
	}
	a.take(limits)
	a.call()
	a.settle(limits)
	a.returnResults()
	return append([]jen.Code{jen.If(off).Block(pass...)}, a.code...)
}

// negated writes the opposite of a condition.
func negated(n ast.Expr, text string) string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return "!(" + text + ")"
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			return strings.TrimPrefix(text, "!")
		}
	}
	return "!" + text
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

// place settles how to write the i-th limit of the slice that is being built;
// sure says that all before it are in the slice.
func (a *admission) place(l *model.Limit, limits string, i int, sure bool) {
	index := fmt.Sprint(i)
	if !sure {
		index = a.names.pick("index")
		a.add(jen.Id(index).Op(":=").Id("len").Call(jen.Id(limits)))
	}
	a.places[l] = limits + "[" + index + "]"
}

// settle adds what corrects the charges of the call that is over.
func (a *admission) settle(limits []jen.Code) {
	groups := a.groups()
	atOnce := len(groups) == 1 && !a.method.Holds()
	for _, group := range groups {
		a.code = append(a.code, a.settled(group[0], func(value jen.Code) []jen.Code {
			if atOnce && len(limits) == len(a.method.Limits) {
				return []jen.Code{a.settleLater(a.withSettled(group, value))}
			}
			var code []jen.Code
			for _, l := range group {
				code = append(code, jen.Op(a.places[l]).Op("=").Op(a.places[l]).Dot("WithSettled").Call(value))
			}
			if atOnce {
				code = append(code, a.settleLater(limits))
			}
			return code
		})...)
	}
	if !atOnce && !a.method.Holds() {
		a.add(a.settleLater(limits))
	}
}

// withSettled returns the method's limits as arguments, those of a group with
// their settled cost.
func (a *admission) withSettled(group []*model.Limit, value jen.Code) []jen.Code {
	var args []jen.Code
	for _, l := range a.method.Limits {
		arg := jen.Op(a.places[l])
		if slices.Contains(group, l) {
			arg.Dot("WithSettled").Call(value)
		}
		args = append(args, arg)
	}
	return args
}

// groups returns the limits that are settled. Those that are refunded on the
// same condition, and always apply, are together.
func (a *admission) groups() [][]*model.Limit {
	var groups [][]*model.Limit
	byRefund := map[string]int{}
	for _, l := range a.method.Limits {
		if !l.Settles() {
			continue
		}
		if l.Settle == nil && len(l.Refund.Guards) == 0 && a.applies[l] == "" {
			text := a.exprString(l.Refund, a.names)
			if i, ok := byRefund[text]; ok {
				groups[i] = append(groups[i], l)
				continue
			}
			byRefund[text] = len(groups)
		}
		groups = append(groups, []*model.Limit{l})
	}
	return groups
}

// settled returns what has a limit's charge refunded or settled: with says how,
// for a cost.
func (a *admission) settled(l *model.Limit, with func(value jen.Code) []jen.Code) []jen.Code {
	applies := a.applies[l]
	switch {
	case l.Settle == nil:
		return nested(a.evaluable(l.Refund, true, applies), with(jen.Lit(0)))
	case l.Refund == nil:
		return a.settledAt(l.Settle, applies, with)
	case applies == "":
		return a.refundedOrSettled(l, with)
	}
	return []jen.Code{jen.If(jen.Id(applies)).Block(a.refundedOrSettled(l, with)...)}
}

func (a *admission) settledAt(x *expr.Expr, applies string, with func(value jen.Code) []jen.Code) []jen.Code {
	headers := a.evaluable(x, false, applies)
	return nested(headers, with(a.int64(x)))
}

// refundedOrSettled settles what is not refunded.
func (a *admission) refundedOrSettled(l *model.Limit, with func(value jen.Code) []jen.Code) []jen.Code {
	var code []jen.Code
	refund := a.evaluable(l.Refund, true, "")
	if len(refund) > 1 {
		refunded := a.names.pick("refunded")
		last := &refund[len(refund)-1]
		condition := last.conditions[len(last.conditions)-1]
		last.conditions = last.conditions[:len(last.conditions)-1]
		code = append(code, jen.Id(refunded).Op(":=").False())
		code = append(code, nested(refund, []jen.Code{jen.Id(refunded).Op("=").Op(condition)})...)
		refund = []header{{conditions: []string{refunded}}}
	}
	otherwise := a.settledAt(l.Settle, "", with)
	if len(l.Settle.Guards) == 0 {
		otherwise = []jen.Code{jen.Block(otherwise...)}
	}
	return append(code, refund[0].code().Block(with(jen.Lit(0))...).Else().Add(otherwise...))
}
