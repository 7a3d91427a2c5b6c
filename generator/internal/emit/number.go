package emit

import (
	"go/types"

	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
	"github.com/rategen/rategen/generator/internal/model"
)

// numbers returns the limit with its cost and max.
func (a *admission) numbers(l *model.Limit, key string) *jen.Statement {
	arg := jen.Nil()
	if key != "" {
		arg = jen.Id(key)
	}
	cost, maximum := a.number(l.Cost, key, "cost", "1"), a.number(l.Max, key, "maximum", "0")
	built := jen.Id(l.Rule.VarName).Dot("Limit").Call(arg)
	if maximum != nil {
		built.Dot("WithMax").Call(maximum)
	}
	if cost != nil {
		built.Dot("WithCost").Call(cost)
	}
	return built
}

// number returns a cost or max as an int64. One that needs a guard is put
// into a variable first; if it cannot be evaluated the key becomes invalid.
func (a *admission) number(x *expr.Expr, key, name, fallback string) jen.Code {
	if x == nil {
		return nil
	}
	value := a.int64(x)
	if x.Const != nil || len(x.Guards) == 0 {
		return value
	}
	local := a.names.pick(name)
	a.add(jen.Id(local).Op(":=").Id("int64").Call(jen.Op(fallback)))
	a.add(a.guarded(x, key, jen.Id(local).Op("=").Add(value)))
	return jen.Id(local)
}

// int64 writes an integer expression as an int64.
func (a *admission) int64(x *expr.Expr) jen.Code {
	if x.Const != nil {
		return jen.Op(a.constant(x))
	}
	value := jen.Op(a.exprString(x, a.names))
	if b, ok := types.Unalias(x.Type).(*types.Basic); !ok || b.Kind() != types.Int64 {
		value = jen.Id("int64").Call(value)
	}
	return value
}
