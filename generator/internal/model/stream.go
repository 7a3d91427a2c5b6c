package model

import (
	"go/types"
	"slices"
	"strings"

	"github.com/rategen/rategen/generator/internal/directive"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/gotypes"
	"github.com/rategen/rategen/generator/internal/naming"
)

// A StreamKind is a form of stream that can be charged while it runs.
type StreamKind int

const (
	// Sequence is the one result of its method, an iter.Seq2 of messages and errors.
	Sequence StreamKind = iota
	// Reader is the first result, an io.Reader or io.ReadCloser, beside an error.
	Reader
	// Receiver is the first result, an interface with Recv() (T, error), beside an error.
	Receiver
	// Sender is a parameter, an interface with Send(T) error.
	Sender
)

// A Stream is what a method sends or returns message by message.
type Stream struct {
	Kind StreamKind
	// Value is the parameter or result.
	Value *expr.Param
	// TypeName is the name of the type that wraps a Receiver or a Sender.
	TypeName string
}

// Wrapped reports whether the stream is wrapped by a type of its own.
func (s *Stream) Wrapped() bool { return s.Kind == Receiver || s.Kind == Sender }

// findStream finds the stream of a method of which a directive has a meter. It reports a
// method that has none, and then returns false.
func (b *Builder) findStream(f *File, m *Method, own []*directive.Directive, w *Wrapper, newVar func(string) string) bool {
	i := slices.IndexFunc(settingsIn(own), func(s *directive.Settings) bool { return s.Expr("meter") != nil })
	if i < 0 {
		return true
	}
	pos := settingsIn(own)[i].Place("meter")
	stream, message, why := m.stream(f.Home)
	if stream == nil {
		b.Report.At(pos, "meter: %s", why)
		return false
	}
	name := "message"
	if stream.Kind == Reader {
		name = "bytes"
	}
	if bad := unreachable(message, f.Home); bad != nil {
		b.Report.At(pos, "meter: package %s cannot name the type %s.%s of what the stream of %s carries: have the stream's method name it by an exported alias", f.Home.Path(), bad.Pkg().Path(), bad.Name(), m.Name)
		return false
	}
	m.Message = &expr.Param{Source: name, Type: message}
	if stream.Wrapped() {
		stream.TypeName = newVar(naming.LowerFirst(w.TypeName) + m.Name + "Stream")
	}
	m.Stream = stream
	return true
}

// ReturnsStream reports whether a result is used after the method has returned.
func (m *Method) ReturnsStream() bool { return m.returnedStream() != nil }

// returnedStream returns the type of such a result, or nil: of a channel, a sequence, what has a
// method Read, Recv or Next, or an answer whose Body has.
func (m *Method) returnedStream() types.Type {
	i := slices.IndexFunc(m.Results, func(p *expr.Param) bool {
		t := p.Type
		if body, ok := lookup(t, "Body").(*types.Var); ok {
			t = body.Type()
		}
		if _, ok := t.Underlying().(*types.Chan); ok {
			return true
		}
		name, _ := iterOf(t)
		return name != "" || slices.ContainsFunc([]string{"Read", "Recv", "Next"}, func(name string) bool {
			_, ok := lookup(t, name).(*types.Func)
			return ok
		})
	})
	if i < 0 {
		return nil
	}
	return m.Results[i].Type
}

// lookup returns an exported field or method of a type, or nil.
func lookup(t types.Type, name string) types.Object {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	return obj
}

// stream returns the stream of a method and the type of its messages, or says why there is
// none.
func (m *Method) stream(home *types.Package) (*Stream, types.Type, string) {
	var first *expr.Param
	if len(m.Results) > 0 {
		first = m.Results[0]
	}
	twoResults := len(m.Results) == 2 && m.ReturnsError()
	if first != nil {
		if name, args := iterOf(first.Type); name != "" {
			if name == "Seq" || !expr.IsError(args.At(1)) {
				return nil, nil, "an iter." + name + " has no place for the error of a refusal: have " + m.Name + " return an iter.Seq2[T, error]"
			}
			if len(m.Results) > 1 {
				return nil, nil, m.Name + " is called before its sequence is: have it return the iter.Seq2 alone, which tells all errors"
			}
			return &Stream{Kind: Sequence, Value: first}, args.At(0), ""
		}
		if twoResults && (gotypes.IsNamed(first.Type, "io", "Reader") || gotypes.IsNamed(first.Type, "io", "ReadCloser")) {
			return &Stream{Kind: Reader, Value: first}, types.Typ[types.Int], ""
		}
		if message := messageOf(first.Type, "Recv", home); message != nil && twoResults {
			if why := m.unwrappable(first, "Recv"); why != "" {
				return nil, nil, why
			}
			return &Stream{Kind: Receiver, Value: first}, message, ""
		}
	}
	for _, p := range m.Params {
		if message := messageOf(p.Type, "Send", home); message != nil {
			if why := m.unwrappable(p, "Send"); why != "" {
				return nil, nil, why
			}
			return &Stream{Kind: Sender, Value: p}, message, ""
		}
	}
	return nil, nil, m.Name + " has no stream that could be charged: it would be an iter.Seq2[T, error] as its one result; an io.Reader, an io.ReadCloser or an interface with a method Recv() (T, error), and an error; or a parameter of an interface type with a method Send(T) error"
}

// iterOf returns the name and the type arguments of a type of package iter, or "".
func iterOf(t types.Type) (name string, args *types.TypeList) {
	if gotypes.IsNamed(t, "iter", "Seq") || gotypes.IsNamed(t, "iter", "Seq2") {
		n := types.Unalias(t).(*types.Named)
		return n.Obj().Name(), n.TypeArgs()
	}
	return "", nil
}

// messageOf returns the type of what a stream's method Recv returns or Send takes, or nil if
// there is no such method.
func messageOf(t types.Type, method string, home *types.Package) types.Type {
	obj, _, _ := types.LookupFieldOrMethod(t, false, home, method)
	fn, ok := obj.(*types.Func)
	if !ok {
		return nil
	}
	in, out := fn.Signature().Params(), fn.Signature().Results()
	if fn.Signature().Variadic() {
		return nil
	}
	if method == "Recv" && in.Len() == 0 && out.Len() == 2 && expr.IsError(out.At(1).Type()) {
		return out.At(0).Type()
	}
	if method == "Send" && in.Len() == 1 && out.Len() == 1 && expr.IsError(out.At(0).Type()) {
		return in.At(0).Type()
	}
	return nil
}

// unwrappable says why a stream cannot be wrapped, or "".
func (m *Method) unwrappable(p *expr.Param, method string) string {
	t := p.Type
	name := ""
	switch n := t.(type) {
	case *types.Alias:
		name = n.Obj().Name()
	case *types.Named:
		name = n.Obj().Name()
	}
	iface, ok := t.Underlying().(*types.Interface)
	if _, isParam := types.Unalias(t).(*types.TypeParam); !ok || isParam || name == "" {
		return "the stream of " + m.Name + " is of type " + types.TypeString(t, (*types.Package).Name) + ", which is no interface with a name, so no other can stand in its place: declare one with its methods, or charge the method that makes the messages, such as one that returns an iter.Seq2[T, error], and pass its error on"
	}
	for other := range iface.Methods() {
		if other.Name() == name || other.Name() == strings.ToLower(method) {
			return "the type " + name + " of the stream of " + m.Name + " has a method " + other.Name() + ", which hides what stands in its place: rename the method"
		}
	}
	return ""
}

// applyMeter checks what a message of a stream costs.
func (b *Builder) applyMeter(l *Limit, v directive.Value, m *Method, scope *expr.Scope) {
	if l.Meter = scope.Integer("meter", v, m.Streaming()); l.Meter == nil || l.Meter.Const == nil {
		return
	}
	most, remedy := l.Rule.Plain().MostCost, ""
	if l.Rule.Plain().Stores() {
		remedy = " a " + l.Rule.Algorithm() + ": use algorithm=sliding-counter or algorithm=token-bucket"
	}
	if n, exact := int64Of(l.Meter.Const); !exact || n < 1 || n > most {
		b.Report.At(v.Pos, "meter: %s is not between 1 and %d, the most that one message may cost%s", l.Meter.Const, most, remedy)
	}
}

// checkStream reports what limits of a method do that its stream has no place for: it goes
// on when the call has returned.
func (b *Builder) checkStream(m *Method) {
	if m.Stream == nil || m.Stream.Kind == Sender {
		return
	}
	for _, l := range m.Limits {
		for option, x := range map[string]*expr.Expr{"refund": l.Refund, "settle": l.Settle, "hold": l.Hold} {
			if x != nil {
				b.Report.At(l.Rule.Place(option), "%s: %s has a stream that meter charges, and which goes on when the call returns: remove the option, or meter", option, m.Name)
			}
		}
		if m.Stream.Kind == Sequence && l.Deny != nil {
			b.Report.At(l.Rule.Place("deny"), "deny: the sequence of %s tells a refusal as its error, with meter: remove deny", m.Name)
		}
		if m.Stream.Kind != Sequence && l.Rule.Reserve() > 0 && l.Meter != nil && l.Cost != nil {
			b.Report.At(l.Rule.Place("reserve"), "reserve: a caller that drops the stream of %s unread would keep its cost reserved: remove cost or reserve, or have %s return an iter.Seq2[T, error]", m.Name, m.Name)
		}
		if m.Stream.Kind != Sequence && l.IsPermit() {
			b.Report.At(l.Rule.Place("algorithm"), "algorithm: %s has a stream that meter charges, and a caller that drops it would keep its permits: limit the calls in flight of the method that does the work", m.Name)
		}
	}
}
