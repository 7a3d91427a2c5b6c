package emit

import (
	"github.com/dave/jennifer/jen"
	"github.com/rategen/rategen/generator/internal/expr"
)

// holdOff adds what has the results of the call hold calls back, where the time for that
// can be evaluated.
func (a *admission) holdOff() {
	for _, l := range a.limits {
		if l.Hold == nil {
			continue
		}
		a.add(a.evaluable(l.Hold.Lower(expr.Facts{}), l.ifApplies(), func() []jen.Code {
			return []jen.Code{a.wrapperFunc("HoldOff").Call(a.ctx, a.limiter, jen.Op(l.place), jen.Op(a.text(l.Hold, a.names)))}
		})...)
	}
}
