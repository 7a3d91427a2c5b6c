package ratepage

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/observe"
)

// maxNodes is how many servers have a circuit breaker on the page.
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

// A memoryView is the last reading of Redis's memory.
type memoryView struct {
	Used int64     `json:"used"`
	Max  int64     `json:"max"`
	High bool      `json:"high"`
	At   time.Time `json:"at"`
}

// A failureView counts failures of one kind since the program started.
type failureView struct {
	Class  string    `json:"class"`
	Policy string    `json:"policy"` // or "settling", "holding"
	Count  uint64    `json:"count"`
	Last   time.Time `json:"last"`
}

// A redisView is what is known of the store.
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
