package main

import (
	"fmt"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/internal/testkit/admission"
	"github.com/rategen/rategen/runtime"
)

// sweepLeased judges the decisions of processes with leases. When a call was
// admitted is not known, but that it was between its start and its end, by the clock
// that all processes of the machine have in common. So a limit was exceeded for sure
// if more calls began and ended within a window than it admits. Refusals are not
// judged: other processes may hold what is left.
func sweepLeased(limits []limit, records []judge.SharedRecord) (*judge.Result, error) {
	keys := make([][]admission.Call, len(limits))
	total := new(judge.Result)
	for i := range records {
		r := &records[i]
		total.Decisions++
		if r.At != 0 {
			total.Admitted++
			total.Recalled += int(r.Recalled)
			keys[r.Limit] = append(keys[r.Limit], admission.Call{Begin: r.Start, End: r.End, Cost: int64(r.Cost)})
		}
	}
	fullest, fullestRule := 0.0, &limits[0].rule
	for i, key := range keys {
		rule := &limits[i].rule
		for _, b := range bounds(rule) {
			used, over := admission.Fullest(key, b.window.Microseconds(), b.max)
			total.Over += over
			if part := float64(used) / float64(b.max); part > fullest {
				fullest, fullestRule = part, rule
			}
		}
	}
	total.Notes = append(total.Notes, fmt.Sprintf("%d of %d calls were admitted by leases; the fullest window, of max %d in %v with a lease of %v, held at least %.1f %% of what it may",
		total.Recalled, total.Admitted, fullestRule.Max, fullestRule.Window, fullestRule.Lease, 100*fullest))
	if total.Recalled*4 < total.Admitted {
		return nil, fmt.Errorf("only %d of %d calls were admitted by leases, which are to be checked", total.Recalled, total.Admitted)
	}
	return total, nil
}

// A bound is how much any window of a length may hold.
type bound struct {
	window time.Duration
	max    int64
}

// bounds returns what a rule promises: for a bucket its burst, and what drains in
// windows of some lengths.
func bounds(r *runtime.Rule) []bound {
	if r.Algorithm != runtime.TokenBucket {
		return []bound{{r.Window, r.Max}}
	}
	var all []bound
	for _, window := range []time.Duration{r.Lease / 4, r.Lease, 2 * r.Lease, r.Window, 3 * r.Window} {
		drains := float64(r.Max) * float64(window) / float64(r.Window)
		all = append(all, bound{window, r.Burst + int64(drains) + 1})
	}
	return all
}
