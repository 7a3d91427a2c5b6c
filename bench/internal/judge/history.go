package judge

import (
	"sort"

	"github.com/rategen/rategen/runtime"
)

// A History follows one key by its charges alone, in their order. State i is
// what the key was after i charges.
type History interface {
	// charge adds a charge and says what is wrong with it.
	charge(r *SharedRecord) Fault
	// denies reports whether in a state a call of that cost has no room at a
	// time, and if so when it has.
	denies(state int, t, cost int64) (fits int64, denied bool)
}

// A logHistory is that of a sliding log.
type logHistory struct {
	window, max int64
	times       []int64
	sums        []int64 // cost of the charges before each state
}

// NewLogHistory returns the empty history of a sliding log.
func NewLogHistory(r *runtime.Rule) History {
	return &logHistory{window: r.Window.Microseconds(), max: r.Max, sums: []int64{0}}
}

func (h *logHistory) charge(r *SharedRecord) Fault {
	h.times = append(h.times, r.At)
	h.sums = append(h.sums, h.sums[len(h.sums)-1]+int64(r.Cost))
	used := h.used(len(h.times), r.At)
	return r.judge(used, h.max)
}

// judge judges a charge after which so much of a max is used.
func (r *SharedRecord) judge(used, max int64) Fault {
	switch {
	case used > max:
		return Over
	case r.Left != max-used || r.Wait != 0 || r.At < r.Start || r.At > r.End:
		return Wrong
	}
	return 0
}

// used returns the cost of the charges of a state in the window (t-W, t].
func (h *logHistory) used(state int, t int64) int64 {
	left := sort.Search(state, func(i int) bool { return h.times[i] > t-h.window })
	return h.sums[state] - h.sums[left]
}

func (h *logHistory) denies(state int, t, cost int64) (int64, bool) {
	if h.used(state, t)+cost <= h.max {
		return 0, false
	}
	// The last charge that has to leave.
	i := sort.Search(state, func(i int) bool { return h.sums[state]-h.sums[i+1]+cost <= h.max })
	return h.times[i] + h.window, true
}

// A fixedHistory is that of a fixed window.
type fixedHistory struct {
	window, max  int64
	starts, used []int64 // of each state
}

// NewFixedHistory returns the empty history of a fixed window.
func NewFixedHistory(r *runtime.Rule) History {
	return &fixedHistory{r.Window.Microseconds(), r.Max, []int64{0}, []int64{0}}
}

func (h *fixedHistory) charge(r *SharedRecord) Fault {
	n := len(h.used) - 1
	start, used := h.starts[n], h.used[n]
	if r.At >= start+h.window {
		start, used = r.At, 0
	}
	used += int64(r.Cost)
	h.starts, h.used = append(h.starts, start), append(h.used, used)
	return r.judge(used, h.max)
}

func (h *fixedHistory) denies(state int, t, cost int64) (int64, bool) {
	end := h.starts[state] + h.window
	return end, t < end && h.used[state]+cost > h.max
}
