package judge

import (
	"sort"

	"github.com/rategen/rategen/runtime"
)

// A History follows one key by its charges alone, in their order. State i is
// what the key was after i charges.
type History interface {
	// at returns the time of a charge that is made next, by a clock.
	at(clock int64) int64
	// charge adds a charge, and returns how much is used after it.
	charge(at, cost int64) (used int64)
	// refuses reports whether in a state a call of that cost has no room at a
	// time, and if so when it has.
	refuses(state int, t, cost int64) (fits int64, refused bool)
	// most is how much may be used, and slack for how much longer than needed a
	// call may be refused, or a charge may count.
	most() (most, slack int64)
}

// A logHistory is that of a sliding log, and of a counter whose buckets are some time
// wide. It keeps every event.
//
// The window is (t-W, t], where t is the clock of Redis, but never before the
// newest event. A log has to admit a call if and only if the window and the
// call together hold no more than max. Of a counter no window may hold more
// either, and it has to admit a call if that is so of the longer window
// (t-W-width, t].
type logHistory struct {
	window, max int64
	width       int64 // 0: a log
	times       []int64
	sums        []int64 // cost of the charges before each state
}

// NewLogHistory returns the empty history of a sliding log.
func NewLogHistory(r *runtime.Rule) History { return newLogHistory(r, 0) }

// NewCounterHistory returns the empty histories of counters of n buckets or more.
func NewCounterHistory(n int64) func(*runtime.Rule) History {
	return func(r *runtime.Rule) History { return newLogHistory(r, (r.Window.Microseconds()+n-1)/n) }
}

func newLogHistory(r *runtime.Rule, width int64) *logHistory {
	return &logHistory{window: r.Window.Microseconds(), max: r.Max, width: width, sums: []int64{0}}
}

func (h *logHistory) most() (most, slack int64) { return h.max, max(0, h.width-1) }

func (h *logHistory) at(clock int64) int64 {
	if n := len(h.times); n > 0 {
		return max(clock, h.times[n-1])
	}
	return clock
}

func (h *logHistory) charge(at, cost int64) int64 {
	h.times = append(h.times, at)
	h.sums = append(h.sums, h.sums[len(h.sums)-1]+cost)
	return h.used(len(h.times), at-h.window)
}

// used returns the cost of the charges of a state that came later than a time.
func (h *logHistory) used(state int, later int64) int64 {
	left := sort.Search(state, func(i int) bool { return h.times[i] > later })
	return h.sums[state] - h.sums[left]
}

func (h *logHistory) refuses(state int, t, cost int64) (int64, bool) {
	if h.used(state, t-h.window-h.width)+cost <= h.max {
		return 0, false
	}
	// The last charge that has to leave.
	i := sort.Search(state, func(i int) bool { return h.sums[state]-h.sums[i+1]+cost <= h.max })
	return h.times[i] + h.window, true
}

// A fixedHistory is that of a fixed window: it starts with an event, and has to
// admit a call if and only if it and the call together hold no more than max.
type fixedHistory struct {
	window, max  int64
	starts, used []int64 // of each state
}

// NewFixedHistory returns the empty history of a fixed window.
func NewFixedHistory(r *runtime.Rule) History {
	return &fixedHistory{r.Window.Microseconds(), r.Max, []int64{0}, []int64{0}}
}

func (h *fixedHistory) most() (most, slack int64) { return h.max, 0 }

func (h *fixedHistory) at(clock int64) int64 {
	if start := h.starts[len(h.starts)-1]; clock < start+h.window {
		return max(clock, start)
	}
	return clock
}

func (h *fixedHistory) charge(at, cost int64) int64 {
	n := len(h.used) - 1
	start, used := h.starts[n], h.used[n]
	if at >= start+h.window {
		start, used = at, 0
	}
	h.starts, h.used = append(h.starts, start), append(h.used, used+cost)
	return used + cost
}

func (h *fixedHistory) refuses(state int, t, cost int64) (int64, bool) {
	end := h.starts[state] + h.window
	return end, t < end && h.used[state]+cost > h.max
}
