package emit

import (
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// key builds a limit's key. It is invalid if the limit's condition cannot be
// evaluated, and has its parts otherwise.
func (a *admission) key(l *limit, key string) {
	start := a.runtime("NewKey").Call()
	if len(l.when.reasons) == 0 {
		a.keyParts(l.Parts, l.when.facts, key, start)
		return
	}
	a.add(jen.Id(key).Op(":=").Add(start))
	outer := a.code
	a.code = nil
	a.keyParts(l.Parts, l.when.facts, key, nil)
	parts := a.code
	code := jen.Null()
	for i, r := range l.when.reasons {
		if i > 0 {
			code.Else()
		}
		code.If(jen.Op(r.String())).Block(jen.Id(key).Dot("AddInvalid").Call(r.text))
	}
	if len(l.Parts) == 1 && isOneIf(l.Parts[0].Expr.Lower(l.when.facts).Steps) {
		code.Else().Add(parts...)
	} else if len(parts) > 0 {
		code.Else().Block(parts...)
	}
	a.code = append(outer, code)
}

// keyParts adds parts to a key; start, if not nil, is the new key they are
// added to. Parts in a row that need no steps are added in one chain.
func (a *admission) keyParts(parts []*expr.KeyPart, facts expr.Facts, key string, start *jen.Statement) {
	chain := start
	flush := func() {
		if start != nil {
			chain = jen.Id(key).Op(":=").Add(chain)
		}
		if chain != nil {
			a.add(chain)
		}
		chain, start = nil, nil
	}
	for _, p := range parts {
		value := func() *jen.Statement {
			v := jen.Op(a.text(p.Expr, a.names))
			if p.Convert != "" {
				v = jen.Id(p.Convert).Call(v)
			}
			return v
		}
		if x := p.Expr.Lower(facts); len(x.Steps) > 0 {
			flush()
			a.add(a.guarded(x, a.invalid(x.Expr, key), func() []jen.Code {
				return []jen.Code{jen.Id(key).Dot(p.Add).Call(value())}
			})...)
			continue
		}
		if chain == nil {
			chain = jen.Id(key)
		}
		chain.Dot(p.Add).Call(value())
	}
	flush()
}

// invalid returns what makes a key invalid where a test is not passed.
func (a *admission) invalid(x *expr.Expr, key string) func(*expr.Test) jen.Code {
	return func(t *expr.Test) jen.Code {
		return jen.Id(key).Dot("AddInvalid").Call(jen.Lit(reasonOf(x, t)))
	}
}

// reasonOf says for the log why a key is invalid.
func reasonOf(x *expr.Expr, t *expr.Test) string {
	if !x.IsPart() {
		return x.Option + "=" + x.Source.Text + ": " + t.Reason
	}
	if strings.HasPrefix(t.Reason, x.Source.Text+" ") {
		return t.Reason
	}
	return x.Source.Text + ": " + t.Reason
}
