package emit

import (
	"strconv"

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
	code := a.unlimited(pass)
	limits := a.arguments()
	a.take(limits)
	a.callAndEnd()
	return append(code, a.code...)
}

// callAndEnd adds the call and what is to be done when it is over.
func (a *admission) callAndEnd() {
	a.call()
	n := len(a.method.Results)
	if a.method.Stream != nil && a.method.ReturnsError() { // which may say it in other words
		stopped := jen.Id(a.names.pick("stopped"))
		a.add(jen.If(stopped.Clone().Op(":=").Id(a.meter).Dot("Err").Call(), stopped.Clone().Op("!=").Nil()).Block(
			jen.Id(a.names.params[a.method.Results[n-1]]).Op("=").Add(stopped),
		))
	}
	if a.method.Settles() {
		a.settle()
	}
	a.holdOff()
	a.returnResults()
}

// unlimited returns what passes a call on that the limiter is not to be asked about.
func (a *admission) unlimited(pass []jen.Code) []jen.Code {
	off := condition{text: "!" + a.enabled}
	var code []jen.Code
	if only := a.only(); only != nil && only.When != nil {
		only.when = a.when(only.When, true)
		h := only.when.headers[0]
		if len(h.before) > 0 {
			code = append([]jen.Code{jen.If(jen.Op(off.String())).Block(pass...)}, h.before...)
			off = condition{}
		}
		off = anyOf(off, h.negated())
	}
	return append(code, jen.If(jen.Op(off.String())).Block(pass...))
}

// settleLater returns the call that settles the decision at some costs.
func (a *admission) settleLater(costs ...jen.Code) *jen.Statement {
	if a.meter != "" {
		return jen.Id(a.meter).Dot("Close").Call(costs...)
	}
	return a.limiter.Clone().Dot("SettleLater").Call(append([]jen.Code{a.ctx, jen.Id(a.decision)}, costs...)...)
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

// index settles which of the limits that are being built, in a slice, the i-th is; sure
// says that all before it are in the slice.
func (a *admission) index(l *limit, limits string, i int, sure bool) {
	l.index = strconv.Itoa(i)
	if !sure {
		l.index = a.names.pick("index")
		a.add(jen.Id(l.index).Op(":=").Id("len").Call(jen.Id(limits)))
	}
	l.place = limits + "[" + l.index + "]"
}

// settle adds what corrects the charges of the call that is over. Where there is more than
// one case the costs are found out in an array.
func (a *admission) settle() {
	groups := a.groups()
	if len(groups) == 1 && a.costs == "" {
		if costs := a.costsOf(groups[0]); costs != nil {
			a.add(a.settled(groups[0][0], func(value jen.Code) []jen.Code { return []jen.Code{a.settleLater(costs(value)...)} })...)
			return
		}
	}
	permit := a.costs != ""
	if !permit {
		a.declareCosts()
	}
	for _, group := range groups {
		a.add(a.settled(group[0], func(value jen.Code) []jen.Code {
			var code []jen.Code
			for _, l := range group {
				code = append(code, jen.Id(a.costs).Index(jen.Op(l.index)).Op("=").Add(value))
			}
			return code
		})...)
	}
	if !permit {
		a.add(a.settleLater(a.allCosts()))
	}
}

// costsOf returns the costs of a call of which only a group is settled, or nil if it is
// not known before the call which limits they are.
func (a *admission) costsOf(group []*limit) func(value jen.Code) []jen.Code {
	settled := map[int]bool{}
	last := 0
	for _, l := range group {
		i, err := strconv.Atoi(l.index)
		if err != nil {
			return nil
		}
		settled[i], last = true, i
	}
	return func(value jen.Code) []jen.Code {
		var costs []jen.Code
		for i := range last + 1 {
			if settled[i] {
				costs = append(costs, value)
			} else {
				costs = append(costs, jen.Op(charged))
			}
		}
		return costs
	}
}

// charged is the cost at which a limit keeps its charge.
const charged = "-1"

// declareCosts adds the costs of the limits up to the last that is settled.
func (a *admission) declareCosts() {
	var costs []jen.Code
	for i, l := range a.limits {
		if l.Settles() {
			costs = costs[:len(costs):len(costs)]
			for len(costs) <= i {
				costs = append(costs, jen.Op(charged))
			}
		}
	}
	a.costs = a.names.pick("costs")
	a.add(jen.Id(a.costs).Op(":=").Index(jen.Op("...")).Int64().Values(costs...))
}

func (a *admission) allCosts() jen.Code { return jen.Id(a.costs).Index(jen.Op(":")).Op("...") }

// giveBack adds the deferred call that gives permits back, and settles all other limits.
func (a *admission) giveBack() {
	if !a.method.Settles() {
		a.add(jen.Defer().Add(a.settleLater()))
		return
	}
	a.declareCosts()
	a.add(jen.Defer().Add(a.settleLater(a.allCosts())))
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
	applies := l.ifApplies()
	if l.Settle == nil {
		return nested(a.refund(l.Refund, applies), with(jen.Lit(0)))
	}
	if l.Refund == nil {
		code, _ := a.settledAt(l.Settle, applies, with)
		return code
	}
	return nested(applies, a.refundedOrSettled(l, with))
}

// settledAt has a charge settled where its cost can be evaluated. It also reports whether
// the code is one if statement.
func (a *admission) settledAt(x *expr.Expr, headers []header, with func(value jen.Code) []jen.Code) ([]jen.Code, bool) {
	lowered := x.Lower(expr.Facts{})
	if expr.HasShort(lowered.Steps) {
		return a.evaluable(lowered, headers, func() []jen.Code { return with(a.int64(x)) }), false
	}
	headers = chain(headers, a.headers(x, lowered.Steps))
	return nested(headers, with(a.int64(x))), len(headers) > 0 && len(headers[0].before) == 0 && !headers[0].isZero()
}

// refundedOrSettled settles what is not refunded.
func (a *admission) refundedOrSettled(l *limit, with func(value jen.Code) []jen.Code) []jen.Code {
	refund := a.refund(l.Refund, nil)
	var code []jen.Code
	if len(refund) == 1 && len(refund[0].init) == 0 { // it is a variable already
		code, refund[0].before = refund[0].before, nil
	} else if isNested(refund) {
		refunded := a.names.pick("refunded")
		code = append(code, jen.Id(refunded).Op(":=").False())
		code = append(code, nested(refund, []jen.Code{jen.Id(refunded).Op("=").True()})...)
		refund = addCondition(nil, plain(refunded))
	}
	otherwise, isIf := a.settledAt(l.Settle, nil, with)
	head := jen.If(jen.Op(refund[0].String())).Block(with(jen.Lit(0))...).Else()
	if isIf {
		return append(code, head.Add(otherwise...))
	}
	return append(code, head.Block(otherwise...))
}
