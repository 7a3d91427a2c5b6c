package crossing

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// nobody is the key of callers whose key cannot be built.
const nobody = 9

func (u use) key() *runtime.Key {
	if u.Key == nobody {
		return runtime.NewKey().AddInvalid(fmt.Sprintf("#rule%d is nil", u.Rule)) // as documents say it
	}
	return runtime.NewKey().AddString(strconv.Itoa(u.Key))
}

// name is the text of the use's key.
func (u use) name() string {
	if u.Key == nobody {
		return "%invalid"
	}
	return strconv.Itoa(u.Key)
}

// uncounted reports whether a use has no key, and its rule no budget for such calls.
func (p *program) uncounted(u use) bool {
	return u.Key == nobody && p.Rules[u.Rule].Invalid != rule.InvalidShare
}

// nobodies holds calls without a key against what their rule says of them: they share a budget,
// which is judged like that of any key, or are refused, or go on and are counted nowhere.
func (o *oracle) nobodies() {
	for _, a := range o.asked {
		may, must := false, false // refused for its key
		for i, u := range a.uses {
			if u.Key != nobody || a.call.Exempt {
				continue
			}
			r, all := o.program.Rules[u.Rule], o.terms(u, a.start, a.end)
			policy := r.Invalid
			refuses := func(t terms) bool { // without a max there is no budget to share
				asked := u.Cost > 0 || r.Hold || r.Block > 0 || t.max == 0 // a cost of 0 only where a key may be blocked
				return asked && !t.off && t.mode.Refuses() && (policy == rule.InvalidRefuse || policy == rule.InvalidShare && t.max == 0)
			}
			may = may || slices.ContainsFunc(all, refuses)
			must = must || !slices.ContainsFunc(all, func(t terms) bool { return !refuses(t) })
			if o.program.uncounted(u) && a.reported[i].yes {
				o.wrong("a call without a key is counted where its rule says so", "#%d: %v", a.number, u)
			}
			if counts := func(t terms) bool { return !t.off && t.max > 0 && t.mode.Refuses() }; policy == rule.InvalidShare && u.Cost > 0 && a.admitted() && !a.more && !a.reported[i].yes && !slices.ContainsFunc(all, func(t terms) bool { return !counts(t) }) {
				o.wrong("calls without a key share one budget", "#%d: %v goes on uncounted", a.number, u)
			}
		}
		if refused := errors.Is(a.err, runtime.ErrInvalidKey); refused && !may || must && a.admitted() {
			o.wrong("a call without a key is refused where its rule says so", "#%d: %v, %v", a.number, a.uses, a.err)
		}
	}
}
