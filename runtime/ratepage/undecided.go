package ratepage

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// undecidedSpan is how many samples count as lately.
const undecidedSpan = 10

// An undecidedView is what the store has not decided lately.
type undecidedView struct {
	// Share is how much of all that was asked this is; null if nobody has counted lately.
	Share *float64        `json:"share"`
	Kinds []undecidedKind `json:"kinds"` // most first; none: all is decided
}

// An undecidedKind is a class of failures and the policy that has decided in place of the store.
type undecidedKind struct {
	Class  string `json:"class"`
	Policy string `json:"policy"` // open: admitted, closed: refused, local: counted in this process
	Count  uint64 `json:"count"`  // lately; 0 if nobody has counted
}

// Undecideds add up what the store did not decide in the last samples.
type undecideds struct {
	last map[failureKind]uint64 // as it was at the sample before
	span []undecidedSample      // the oldest first
}

type undecidedSample struct {
	decisions uint64
	failed    map[failureKind]uint64
}

// sample adds the calls since the sample before, unless that was long ago.
func (u *undecideds) sample(w *redisWatch, decisions uint64, resumed bool, now time.Time) undecidedView {
	counted, fresh := w.undecided(now)
	s := undecidedSample{decisions, make(map[failureKind]uint64)}
	for kind, n := range counted {
		if n -= u.last[kind]; n > 0 {
			s.failed[kind] = n
		}
	}
	u.last = counted
	if resumed {
		u.span = nil
		return undecidedView{Kinds: kindsOf(fresh)}
	}
	u.span = append(u.span, s)
	u.span = u.span[max(0, len(u.span)-undecidedSpan):]
	all, failed, total := uint64(0), uint64(0), make(map[failureKind]uint64)
	for _, s := range u.span {
		all += s.decisions
		for kind, n := range s.failed {
			total[kind] += n
			failed += n
		}
	}
	v := undecidedView{Kinds: kindsOf(total)}
	if all > 0 {
		v.Share = new(min(1, float64(failed)/float64(all)))
	}
	return v
}

func kindsOf(counts map[failureKind]uint64) []undecidedKind {
	kinds := make([]undecidedKind, 0, len(counts))
	for kind, n := range counts {
		kinds = append(kinds, undecidedKind{kind.class.String(), kind.policy, n})
	}
	slices.SortFunc(kinds, func(a, b undecidedKind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Class, b.Class), strings.Compare(a.Policy, b.Policy))
	})
	return kinds
}

// undecided returns how often a failure policy has decided since the program started, and with
// a count of 0 the kinds that were so lately.
func (w *redisWatch) undecided(now time.Time) (counted, fresh map[failureKind]uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counted, fresh = make(map[failureKind]uint64), make(map[failureKind]uint64)
	for kind, f := range w.failures {
		if kind.policy == settling || kind.policy == holding {
			continue
		}
		counted[kind] = f.Count
		if now.Sub(f.Last) <= undecidedSpan*interval {
			fresh[kind] = 0
		}
	}
	return counted, fresh
}
