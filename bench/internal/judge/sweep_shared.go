package judge

import (
	"cmp"
	"slices"
	"sort"

	"github.com/rategen/rategen/runtime"
)

// SweepShared judges the decisions of calls that shared batches.
//
// The charges of a key are put in order by their times, and those of one time
// by what they left. Each must be right for what came before, and must have
// left as much as there was left then: so none is missing and none was made
// twice. A refusal must have been right at some moment between the call's start
// and end. Redis must have told exactly when there would be room. A process
// that recalls a refusal may say so earlier, but it must be after now; and later by no more than
// the slowest call to Redis took, since it tells the time from when Redis had answered.
func SweepShared(history func(*runtime.Rule) History, rules []*runtime.Rule, records []SharedRecord) *Result {
	keys := make([][]*SharedRecord, len(rules))
	slowest := int64(0)
	for i := range records {
		if records[i].Recalled == 0 {
			slowest = max(slowest, records[i].End-records[i].Start)
		}
		keys[records[i].Limit] = append(keys[records[i].Limit], &records[i])
	}
	total := new(Result)
	for i, key := range keys {
		h := history(rules[i])
		var charges, refusals []*SharedRecord
		for _, r := range key {
			if r.At != 0 {
				charges = append(charges, r)
			} else {
				refusals = append(refusals, r)
			}
		}
		slices.SortFunc(charges, func(a, b *SharedRecord) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(b.Left, a.Left))
		})
		for _, r := range charges {
			total.countShared(r, judgeCharge(h, r))
		}
		for _, r := range refusals {
			total.countShared(r, judgeRefusal(h, charges, r, slowest))
		}
	}
	return total
}

func (r *Result) countShared(s *SharedRecord, f Fault) {
	r.Recalled += int(s.Recalled)
	as := &Record{Order: uint64(s.Start), Clock: s.Start, At: s.At, Wait: uint32(s.Wait.Microseconds()), Limit: s.Limit, Cost: s.Cost}
	if s.At != 0 {
		as.Admitted = 1
	}
	r.Count(as, f)
}

// judgeCharge adds a charge to a history, and judges it by what is used then.
func judgeCharge(h History, r *SharedRecord) Fault {
	used := h.charge(r.At, int64(r.Cost))
	most, _ := h.most()
	if used > most {
		return Over
	}
	if r.Left != most-used || r.Wait != 0 || r.At < r.Start || r.At > r.End {
		return Wrong
	}
	return 0
}

// judgeRefusal looks for a moment in which a refusal was right.
func judgeRefusal(h History, charges []*SharedRecord, r *SharedRecord, slowest int64) Fault {
	if r.Wait <= 0 {
		return Wrong
	}
	found := Spurious
	// The state at the call's start, and those that began before its end.
	first := sort.Search(len(charges), func(i int) bool { return charges[i].At > r.Start })
	for state := first; ; state++ {
		begin, end := r.Start, r.End
		if state > first {
			begin = charges[state-1].At
		}
		if begin > r.End {
			return found
		}
		if state < len(charges) {
			end = min(end, charges[state].At)
		}
		if fits, refused := h.refuses(state, begin, int64(r.Cost)); refused {
			found = Wrong
			wait := r.Wait.Microseconds()
			if r.Recalled == 1 && begin+wait <= fits+slowest {
				return 0
			}
			if at := fits - wait; r.Recalled == 0 && begin-1 <= at && at <= end+1 {
				return 0
			}
		}
		if state == len(charges) {
			return found
		}
	}
}
