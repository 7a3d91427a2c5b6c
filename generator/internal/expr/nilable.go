package expr

import (
	"go/types"
	"slices"

	"github.com/rategen/rategen/generator/internal/gotypes"
)

// isNilable reports whether using a member of t's value fails if it is nil.
func isNilable(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return mayBeInterface(p) || allTerms(p, isNilable)
	}
	return gotypes.Is[*types.Pointer](t) || types.IsInterface(t)
}

// mayBeInterface reports whether a type parameter may stand for an interface,
// whose value may be nil. One whose constraint lists types may not.
func mayBeInterface(p *types.TypeParam) bool {
	iface, ok := p.Constraint().Underlying().(*types.Interface)
	return ok && !allTermsOf(iface, func(types.Type) bool { return true })
}

// NeedsAny reports whether a value of type t can be compared with nil only as
// an any.
func NeedsAny(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.TypeParam)
	return ok && mayBeInterface(p)
}

// allTerms reports whether the constraint of a type parameter lists types, and
// is holds for all of them.
func allTerms(p *types.TypeParam, is func(types.Type) bool) bool {
	iface, ok := p.Constraint().Underlying().(*types.Interface)
	return ok && allTermsOf(iface, is)
}

// allTermsOf looks at one list of types at a time: a type has to be in all.
func allTermsOf(iface *types.Interface, is func(types.Type) bool) bool {
	return slices.ContainsFunc(slices.Collect(iface.EmbeddedTypes()), func(t types.Type) bool {
		switch u := types.Unalias(t).(type) {
		case *types.Union:
			for term := range u.Terms() {
				if !isTerm(term.Type(), is) {
					return false
				}
			}
			return true
		default:
			return isTerm(u, is)
		}
	})
}

func isTerm(t types.Type, is func(types.Type) bool) bool {
	if iface, ok := t.Underlying().(*types.Interface); ok {
		return allTermsOf(iface, is)
	}
	return is(t)
}

// isOrAll reports whether is holds for a type, or for all that a type parameter
// may stand for.
func isOrAll(t types.Type, is func(types.Type) bool) bool {
	if p, ok := types.Unalias(t).(*types.TypeParam); ok {
		return allTerms(p, is)
	}
	return is(t)
}
