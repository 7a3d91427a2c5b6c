package ratepage

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/observe"
)

const maxNodes = 1000

// A redisWatch remembers what the store has reported.
type redisWatch struct {
	mu       sync.Mutex
	breakers map[string]breakerView // by node
	use      *memoryView
	failures map[failureKind]*failureView
}

// A failureKind is a class of failures and the policy that decided, or what else failed.
type failureKind struct {
	class  observe.ErrorClass
	policy string
}

// settling and holding stand in place of the policy for failures of settlements and of holds, which
// no policy decides.
const settling, holding = "settling", "holding"

// A breakerView is a circuit breaker that has opened since the program started.
type breakerView struct {
	Node  string    `json:"node"` // empty: the only server, or unknown
	Open  bool      `json:"open"`
	Since time.Time `json:"since"`
}

type memoryView struct {
	Used int64     `json:"used"`
	Max  int64     `json:"max"`
	High bool      `json:"high"`
	At   time.Time `json:"at"`
}

type failureView struct {
	Class  string    `json:"class"`
	Policy string    `json:"policy"` // or "settling", "holding"
	Count  uint64    `json:"count"`
	Last   time.Time `json:"last"`
}

type redisView struct {
	Breakers []breakerView `json:"breakers"`
	Memory   *memoryView   `json:"memory"` // null: there was no reading
	Failures []failureView `json:"failures"`
}

func (w *redisWatch) failure(ev observe.FailureEvent) {
	kind := failureKind{ev.Class, ev.Policy.String()}
	if ev.Settling {
		kind.policy = settling
	} else if ev.Holding {
		kind.policy = holding
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.failures[kind]
	if f == nil {
		if w.failures == nil {
			w.failures = make(map[failureKind]*failureView)
		}
		f = &failureView{Class: kind.class.String(), Policy: kind.policy}
		w.failures[kind] = f
	}
	f.Count++
	f.Last = time.Now()
}

func (w *redisWatch) breaker(ev observe.BreakerEvent, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.breakers == nil {
		w.breakers = make(map[string]breakerView)
	}
	if _, known := w.breakers[ev.Node]; known || len(w.breakers) < maxNodes {
		w.breakers[ev.Node] = breakerView{ev.Node, ev.Open, now}
	}
}

func (w *redisWatch) memory(ev observe.MemoryEvent, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.use = &memoryView{ev.Used, ev.Max, ev.High, now}
}

func (w *redisWatch) view() redisView {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := redisView{Breakers: []breakerView{}, Memory: w.use, Failures: []failureView{}}
	for _, b := range w.breakers {
		v.Breakers = append(v.Breakers, b)
	}
	for _, f := range w.failures {
		v.Failures = append(v.Failures, *f)
	}
	slices.SortFunc(v.Breakers, func(a, b breakerView) int { return strings.Compare(a.Node, b.Node) })
	slices.SortFunc(v.Failures, func(a, b failureView) int {
		return cmp.Or(b.Last.Compare(a.Last), strings.Compare(a.Class, b.Class), strings.Compare(a.Policy, b.Policy))
	})
	return v
}

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

// An undecidedSample is how much was decided up to then, and how much of that not by the store.
type undecidedSample struct {
	decisions uint64
	failed    map[failureKind]uint64
}

// Undecideds are the last samples, the oldest first, which what is lately begins with.
type undecideds []undecidedSample

// sample adds a sample of all decisions so far, and returns what is undecided lately. What the samples were before a
// pause is forgotten.
func (u *undecideds) sample(w *redisWatch, decisions uint64, resumed bool, now time.Time) undecidedView {
	counted, fresh := w.undecided(now)
	if resumed {
		*u = undecideds{{decisions, counted}}
		return undecidedView{Kinds: kindsOf(fresh)}
	}
	*u = append(*u, undecidedSample{decisions, counted})
	*u = (*u)[max(0, len(*u)-undecidedSpan-1):]
	before, failed := (*u)[0], uint64(0)
	lately := make(map[failureKind]uint64)
	for kind, n := range counted {
		if n -= before.failed[kind]; n > 0 {
			lately[kind] = n
			failed += n
		}
	}
	v := undecidedView{Kinds: kindsOf(lately)}
	if all := decisions - before.decisions; all > 0 {
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
