package gotypes

import "go/types"

// IsContext reports whether a value of type t can be used as a context.Context.
// It knows one by its methods: a package need not import context to have one.
func IsContext(t types.Type) bool {
	methods := types.NewMethodSet(t)
	signature := func(name string, params, results int) *types.Signature {
		m := methods.Lookup(nil, name)
		if m == nil {
			return nil
		}
		sig := m.Type().(*types.Signature)
		if sig.Params().Len() != params || sig.Results().Len() != results || sig.Variadic() {
			return nil
		}
		return sig
	}
	result := func(sig *types.Signature, i int) types.Type { return sig.Results().At(i).Type() }

	deadline, done, err, value := signature("Deadline", 0, 2), signature("Done", 0, 1), signature("Err", 0, 1), signature("Value", 1, 1)
	if deadline == nil || done == nil || err == nil || value == nil {
		return false
	}
	ch, ok := result(done, 0).(*types.Chan)
	empty := types.Universe.Lookup("any").Type()
	return ok && ch.Dir() == types.RecvOnly && types.Identical(ch.Elem(), types.NewStruct(nil, nil)) &&
		IsNamed(result(deadline, 0), "time", "Time") && types.Identical(result(deadline, 1), types.Typ[types.Bool]) &&
		types.Identical(result(err, 0), types.Universe.Lookup("error").Type()) &&
		types.Identical(value.Params().At(0).Type(), empty) && types.Identical(result(value, 0), empty)
}

// IsContextType reports whether t is context.Context itself.
func IsContextType(t types.Type) bool { return IsNamed(t, "context", "Context") }

// HasContext reports whether a variable of type t has a method
// Context() context.Context.
func HasContext(t types.Type) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "Context")
	m, ok := obj.(*types.Func)
	if !ok {
		return false
	}
	sig := m.Signature()
	return sig.Params().Len() == 0 && sig.Results().Len() == 1 && IsContextType(sig.Results().At(0).Type())
}
