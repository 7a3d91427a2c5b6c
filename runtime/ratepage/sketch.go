package ratepage

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/callers"
)

// sketchSpan is for how long a span counts. What is shown are the refusals of
// the span that is under way and the one before.
const sketchSpan = 5 * time.Minute

// A sketch finds the keys that were refused most lately, in bounded memory.
type sketch struct{ now atomic.Pointer[spans] }

// Spans are the span that is under way, by its number, and the one before.
type spans struct {
	number          int64
	current, before *callers.Sketch
}

func newSketch() *sketch {
	s := new(sketch)
	s.now.Store(&spans{current: callers.NewSketch(), before: callers.NewSketch()})
	return s
}

// at returns the spans at a time, and begins another one if it has come.
func (s *sketch) at(now time.Time) *spans {
	number := now.UnixNano() / int64(sketchSpan)
	was := s.now.Load()
	if was.number == number {
		return was
	}
	next := &spans{number, callers.NewSketch(), callers.NewSketch()}
	if number == was.number+1 {
		next.before = was.current
	}
	s.now.CompareAndSwap(was, next)
	return s.now.Load()
}

// add counts a refusal of a rule's key at a time.
func (s *sketch) add(rule string, key []byte, now time.Time) { s.at(now).current.Add(rule, key, -1, 1) }

// top returns the n keys that were refused most.
func (s *sketch) top(n int, now time.Time) []callers.Caller {
	at := s.at(now)
	sums := make(map[[2]string]callers.Caller)
	for _, r := range append(at.before.All(), at.current.All()...) {
		name := [2]string{r.Rule, r.Key}
		sum := sums[name]
		sums[name] = callers.Caller{Rule: r.Rule, Key: r.Key, Count: sum.Count + r.Count, Margin: sum.Margin + r.Margin}
	}
	all := make([]callers.Caller, 0, len(sums))
	for _, sum := range sums {
		all = append(all, sum)
	}
	slices.SortFunc(all, callers.Compare)
	return all[:min(n, len(all))]
}
