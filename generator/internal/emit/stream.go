package emit

import (
	"fmt"
	"strconv"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
)

// meteredBody writes a method whose stream is charged while it runs.
func (a *admission) meteredBody() []jen.Code {
	m := a.method
	pass := a.passOn()
	if m.Stream.Kind == model.Sequence {
		a.yield = a.names.pick("yield")
		pass = []jen.Code{a.next.Clone().Call(jen.Id(a.yield)), jen.Return()}
	} else if len(m.Results) == 0 {
		pass = append(pass, jen.Return())
	}
	code := a.unlimited(pass)
	limits := a.arguments()
	a.take(limits)
	a.beginMeter()
	a.names.params[m.Message] = a.names.pick(m.Message.Source)
	switch m.Stream.Kind {
	case model.Sequence:
		a.sequence()
		yield := jen.Func().Params(jen.Id(a.yield).Func().Params(a.message(), jen.Error()).Bool())
		return []jen.Code{jen.Return(yield.Block(append(code, a.code...)...))}
	case model.Reader:
		a.returned(func(stream jen.Code) jen.Code {
			bytes := jen.Id(a.names.params[m.Message]).Int()
			costs := jen.Index().Int64()
			return jen.Id(a.meter).Dot("Reader").Call(stream, jen.Func().Params(bytes).Add(costs).Block(a.reader()...))
		})
	case model.Receiver:
		a.returned(a.receiver)
	case model.Sender:
		a.sender()
		a.callAndEnd()
	}
	return append(code, a.code...)
}

func (a *admission) message() *jen.Statement { return a.imports.typeCode(a.method.Message.Type) }

func (a *admission) err() *jen.Statement { return jen.Id(a.names.params[a.method.Refusal]) }

// beginMeter adds the meter. What a limit has charged without a cost is there for the first
// message.
func (a *admission) beginMeter() {
	a.meter = a.names.pick("meter")
	var used []jen.Code
	ahead := func(l *limit) bool { return l.Meter != nil && l.Cost == nil }
	last, conditional := -1, false
	for i, l := range a.limits {
		if ahead(l) {
			last = i
		}
		conditional = conditional || ahead(l) && !isNumber(l.index)
	}
	for _, l := range a.limits[:last+1] {
		if ahead(l) && !conditional {
			used = append(used, jen.Lit(0))
		} else {
			used = append(used, jen.Op(charged))
		}
	}
	if conditional {
		name := a.names.pick("used")
		a.add(jen.Id(name).Op(":=").Index(jen.Op("...")).Int64().Values(used...))
		for _, l := range a.limits {
			if ahead(l) {
				a.add(nested(l.ifApplies(), []jen.Code{jen.Id(name).Index(jen.Op(l.index)).Op("=").Lit(0)})...)
			}
		}
		used = []jen.Code{jen.Id(name).Index(jen.Op(":")).Op("...")}
	}
	args := append([]jen.Code{a.ctx, jen.Id(a.decision)}, used...)
	a.add(jen.Id(a.meter).Op(":=").Add(a.limiter).Dot("Meter").Call(args...))
}

func isNumber(index string) bool {
	_, err := strconv.Atoi(index)
	return err == nil
}

// ifApplies returns the if within which a limit applies that need not.
func (l *limit) ifApplies() []header {
	if l.applies == "" {
		return nil
	}
	return addCondition(nil, plain(l.applies))
}

// costsOfMessage returns what a message costs each limit, as arguments, and the statements
// before it, which find it out in an array where it is not known at once.
func (a *admission) costsOfMessage() (before, costs []jen.Code, array string) {
	last, simple := 0, true
	for i, l := range a.limits {
		if l.Meter != nil {
			last = i
			simple = simple && l.applies == "" && isNumber(l.index) && !a.canFail(l.Meter)
		}
	}
	for _, l := range a.limits[:last+1] {
		if l.Meter != nil && simple {
			costs = append(costs, a.int64(l.Meter))
		} else {
			costs = append(costs, jen.Lit(0))
		}
	}
	if simple {
		return nil, costs, ""
	}
	array = a.names.pick("costs")
	before = append(before, jen.Id(array).Op(":=").Index(jen.Op("...")).Int64().Values(costs...))
	for _, l := range a.limits {
		if l.Meter != nil {
			before = append(before, a.evaluable(l.Meter.Lower(expr.Facts{}), l.ifApplies(), func() []jen.Code {
				return []jen.Code{jen.Id(array).Index(jen.Op(l.index)).Op("=").Add(a.int64(l.Meter))}
			})...)
		}
	}
	return before, []jen.Code{jen.Id(array).Index(jen.Op(":")).Op("...")}, array
}

// charge returns what charges a message, or does something else with the error.
func (a *admission) charge(refused ...jen.Code) []jen.Code {
	before, costs, _ := a.costsOfMessage()
	call := a.err().Op(":=").Id(a.meter).Dot("Charge").Call(costs...)
	return append(before, jen.If(call, a.err().Op("!=").Nil()).Block(refused...))
}

func (a *admission) yieldError() []jen.Code {
	return []jen.Code{jen.Id(a.yield).Call(jen.Op(a.zero(a.method.Message.Type)), a.err()), jen.Return()}
}

// sequence adds the loop over a sequence.
func (a *admission) sequence() {
	message := jen.Id(a.names.params[a.method.Message])
	a.add(jen.Defer().Id(a.meter).Dot("Close").Call())
	a.add(jen.For(jen.List(message, a.err()).Op(":=").Range().Add(a.next)).Block(
		jen.If(a.err().Op("==").Nil()).Block(a.charge(a.yieldError()...)...),
		jen.If(jen.Op("!").Id(a.yield).Call(message, a.err())).Block(jen.Return()),
	))
}

// returned adds the call, and returns a stream in place of the one that it returns.
func (a *admission) returned(metered func(stream jen.Code) jen.Code) {
	a.call()
	stream, err := jen.Id(a.names.params[a.method.Results[0]]), jen.Id(a.names.params[a.method.Results[1]])
	a.add(jen.If(err.Clone().Op("!=").Nil().Op("||").Add(stream).Op("==").Nil()).Block(
		jen.Id(a.meter).Dot("Close").Call(),
		jen.Return(stream, err),
	))
	a.add(jen.Return(metered(stream), jen.Nil()))
}

// reader returns the body of the function that says what bytes cost.
func (a *admission) reader() []jen.Code {
	before, costs, array := a.costsOfMessage()
	if array == "" {
		return []jen.Code{jen.Return(jen.Index().Int64().Values(costs...))}
	}
	return append(before, jen.Return(jen.Id(array).Index(jen.Op(":"))))
}

// receiver returns a stream that charges what it receives.
func (a *admission) receiver(stream jen.Code) jen.Code {
	message := jen.Id(a.names.params[a.method.Message])
	end := jen.Id(a.meter).Dot("Close").Call()
	body := []jen.Code{
		jen.List(message, a.err()).Op(":=").Add(stream).Dot("Recv").Call(),
		jen.If(a.err().Op("!=").Nil()).Block(end, jen.Return(message, a.err())),
	}
	body = append(body, a.charge(end, jen.Return(jen.Op(a.zero(a.method.Message.Type)), a.err()))...)
	body = append(body, jen.Return(message, jen.Nil()))
	return a.wrapping(stream, jen.Func().Params().Params(a.message(), jen.Error()).Block(body...))
}

// sender has the method send to a stream that charges what is sent.
func (a *admission) sender() {
	a.add(jen.Defer().Id(a.meter).Dot("Close").Call())
	stream, message := jen.Id(a.names.params[a.method.Stream.Value]), jen.Id(a.names.params[a.method.Message])
	unmetered := jen.Id(a.names.pick("unmetered"))
	a.add(unmetered.Clone().Op(":=").Add(stream))
	body := append(a.charge(jen.Return(a.err())), jen.Return(unmetered.Clone().Dot("Send").Call(message)))
	a.add(stream.Clone().Op("=").Add(a.wrapping(unmetered, jen.Func().Params(message.Clone().Add(a.message())).Error().Block(body...))))
}

// wrapping returns a value of the type that wraps a stream.
func (a *admission) wrapping(stream, do jen.Code) *jen.Statement {
	return jen.Op("&").Id(a.method.Stream.TypeName).Add(a.typeArgs).Values(stream, do)
}

// stream writes the type that wraps a method's stream, if it has one.
func (e *emitter) stream(f *jen.File, m *model.Method, params, args *jen.Statement) {
	if m.Stream == nil || !m.Stream.Wrapped() {
		return
	}
	message := e.imports.typeCode(m.Message.Type)
	name, field, signature := "Recv", "recv", jen.Params().Params(message, jen.Error())
	call := jen.Id("s").Dot("recv").Call()
	if m.Stream.Kind == model.Sender {
		name, field, signature = "Send", "send", jen.Params(message).Error()
		call = jen.Id("s").Dot("send").Call(jen.Id("message"))
	}
	self := jen.Id(m.Stream.TypeName)
	f.Line()
	comment(f.Group, fmt.Sprintf("%s is the stream of %s, which is charged for each message.", m.Stream.TypeName, m.Name))
	f.Type().Add(self).Add(params).Struct(
		e.imports.typeCode(m.Stream.Value.Type),
		jen.Id(field).Func().Add(signature),
	)
	f.Line()
	comment(f.Group, fmt.Sprintf("%s charges the message, and returns the error of the limit that has no room for it.", name))
	method := f.Func().Params(jen.Id("s").Op("*").Add(self).Add(args)).Id(name)
	if m.Stream.Kind == model.Sender {
		method.Params(jen.Id("message").Add(message)).Error()
	} else {
		method.Params().Params(message, jen.Error())
	}
	method.Block(jen.Return(call))
}
