package expr

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// A KeyPart is one part of a key: an expression and how it is written.
type KeyPart struct {
	Expr    *Expr
	Add     string // the method of runtime.Key
	Convert string // the type that the method takes, if Expr has another
}

const formattable = "the parts of a key are strings, integers, booleans, []byte, types over these, encoding.TextMarshaler and fmt.Stringer"

// IsPart reports whether an expression is one of a key or a share.
func (e *Expr) IsPart() bool { return e.Option == "key" || e.Option == "share" }

func isInt64(n constant.Value) bool  { _, exact := constant.Int64Val(n); return exact }
func isUint64(n constant.Value) bool { _, exact := constant.Uint64Val(n); return exact }

// dereference makes of an expression what the pointer that it gives points to.
func (e *Expr) dereference(elem types.Type) {
	if _, ok := e.Node.(*ast.BinaryExpr); ok {
		e.Node = &ast.ParenExpr{X: e.Node}
	}
	e.Node, e.Type = &ast.StarExpr{X: e.Node}, elem
}

// FormatOf returns the method of runtime.Key that writes a value of type t and
// the type to convert it to first. It prefers what the type says itself,
// MarshalText and String, to what it is made of.
func FormatOf(t types.Type) (add, convert string) {
	if types.Implements(t, textMarshaler) {
		return "AddText", ""
	}
	if types.Implements(t, stringer) {
		return "AddStringer", ""
	}
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return formatOfTypeParam(p)
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		if types.Identical(u.Elem(), types.Typ[types.Byte]) {
			return "AddBytes", ""
		}
	case *types.Basic:
		want := types.Invalid
		info := u.Info()
		switch {
		case info&types.IsString != 0:
			add, want = "AddString", types.String
		case info&types.IsBoolean != 0:
			add, want = "AddBool", types.Bool
		case info&types.IsUnsigned != 0:
			add, want = "AddUint", types.Uint64
		case info&types.IsInteger != 0:
			add, want = "AddInt", types.Int64
		default:
			return "", ""
		}
		if u.Info()&types.IsUntyped == 0 && !types.Identical(t, types.Typ[want]) {
			convert = types.Typ[want].Name()
		}
	}
	return add, convert
}

// formatOfTypeParam returns how to write a type parameter all of whose types
// are written the same way.
func formatOfTypeParam(p *types.TypeParam) (add, convert string) {
	iface, ok := p.Constraint().Underlying().(*types.Interface)
	if !ok {
		return "", ""
	}
	for e := range iface.EmbeddedTypes() {
		terms := []types.Type{e}
		if u, ok := e.Underlying().(*types.Union); ok {
			terms = nil
			for t := range u.Terms() {
				terms = append(terms, t.Type())
			}
		}
		for _, t := range terms {
			b, ok := t.Underlying().(*types.Basic)
			if !ok {
				return "", ""
			}
			a, _ := FormatOf(b)
			if a == "" || add != "" && a != add {
				return "", ""
			}
			add = a
		}
	}
	return add, map[string]string{"AddString": "string", "AddBool": "bool", "AddUint": "uint64", "AddInt": "int64"}[add]
}

var (
	textMarshaler = oneMethod("MarshalText", types.NewSlice(types.Typ[types.Byte]), types.Universe.Lookup("error").Type())
	stringer      = oneMethod("String", types.Typ[types.String])
)

// oneMethod returns the interface of one method without parameters.
func oneMethod(name string, results ...types.Type) *types.Interface {
	var vars []*types.Var
	for _, t := range results {
		vars = append(vars, types.NewParam(token.NoPos, nil, "", t))
	}
	sig := types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(vars...), false)
	return types.NewInterfaceType([]*types.Func{types.NewFunc(token.NoPos, nil, name, sig)}, nil).Complete()
}
