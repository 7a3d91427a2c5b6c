// Package contest has limiters answer the same calls in turn, several times
// over, and measures what each costs.
package contest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/server"
)

// A Plan says what to measure, and for how long.
type Plan struct {
	// Part is what of all there is.
	Part Part
	// Rounds is how often each limiter has its turn in each case.
	Rounds int
	// Warm is how long it is asked in each turn before that counts, and
	// Measure how long it does count.
	Warm, Measure time.Duration
	// Recall is Measure for a limiter that refuses by itself what Redis has
	// refused lately, in a case where it does. It is as long as that is believed,
	// so that Redis is asked about each key again. Since that takes long, such
	// cases have RoundsFull rounds.
	Recall     time.Duration
	RoundsFull int
	// MeasureLocal and RoundsLocal are the same for limiters in memory.
	MeasureLocal time.Duration
	RoundsLocal  int
	// Callers are how many there are in the cases of the curve. Each round is
	// as short as MeasureCurve, and there are RoundsCurve of them: limiters are
	// compared within a round, so that what else the machine does meets all.
	Callers      []int
	MeasureCurve time.Duration
	RoundsCurve  int
	// Fill is over how long the events of the keys are spread whose size is
	// measured.
	Fill time.Duration
	// Connections is how many each client has at most.
	Connections int
	// Timeout is how long a decision of rategen's may wait for Redis.
	Timeout time.Duration
}

// The plans there are.
var (
	Whole = Plan{
		Rounds: 8, Warm: 110 * time.Millisecond, Measure: 130 * time.Millisecond, Recall: time.Second, RoundsFull: 3,
		MeasureLocal: 60 * time.Millisecond, RoundsLocal: 5, Fill: 4 * time.Second, Connections: 64,
		Callers: curve, MeasureCurve: 25 * time.Millisecond, RoundsCurve: 24,
		Timeout: 100 * time.Millisecond,
	}
	// Quick shows that everything works; its numbers are rough.
	Quick = Plan{
		Rounds: 1, Warm: 20 * time.Millisecond, Measure: 60 * time.Millisecond, Recall: 100 * time.Millisecond, RoundsFull: 1,
		MeasureLocal: 10 * time.Millisecond, RoundsLocal: 1, Fill: 500 * time.Millisecond, Connections: 64,
		Callers: curve, MeasureCurve: 10 * time.Millisecond, RoundsCurve: 1,
		Timeout: server.Patience, // also on a machine that does much else
	}
)

// curve is how many callers the curve shows.
var curve = []int{1, 2, 4, 8, 16, 32, 64, 256, 2000}

// A Kind says which calls come.
type Kind uint8

const (
	// Distinct is calls on many keys, all of which have room.
	Distinct Kind = iota
	// Hot is calls on one key, which has room.
	Hot
	// Full is calls on many keys, none of which has.
	Full
)

// String returns the kind as a heading has it.
func (k Kind) String() string {
	return [...]string{"keys admitted", "hot key admitted", "keys, all refused"}[k]
}

// A Case is some callers that ask about some keys.
type Case struct {
	Callers  int
	Keys     int
	Kind     Kind
	InMemory bool // asks limiters that do not use Redis
}

// String returns the case as a heading has it.
func (c Case) String() string {
	callers, keys := "callers", fmt.Sprintf("%s %v", thousands(c.Keys), c.Kind)
	if c.Callers == 1 {
		callers = "caller"
	}
	if c.Kind == Hot {
		keys = fmt.Sprintf("one %v", c.Kind)
	}
	return fmt.Sprintf("%d %s, %s", c.Callers, callers, keys)
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// limits returns what the calls meet.
func (c Case) limits() limiters.Limits {
	switch {
	case c.Kind == Full:
		return limiters.NoRoom
	case c.InMemory && c.Keys > 10_000:
		return limiters.ManyRoom
	case c.InMemory:
		return limiters.LocalRoom
	case c.Kind == Hot:
		return limiters.HotRoom
	}
	return limiters.Room
}

// SharedCases are what limiters over Redis are asked.
var SharedCases = cases([]int{1, 64, 256}, Case{0, 1000, Distinct, false}, Case{0, 1, Hot, false}, Case{0, 1000, Full, false})

// LocalCases are what limiters in memory are asked.
var LocalCases = cases([]int{1, 64}, Case{0, 1000, Distinct, true}, Case{0, 100_000, Distinct, true}, Case{0, 1000, Full, true}, Case{0, 100_000, Full, true})

func cases(callers []int, of ...Case) (all []Case) {
	for _, c := range of {
		for _, c.Callers = range callers {
			all = append(all, c)
		}
	}
	return all
}

// keys returns the names of n keys, all of one length.
func keys(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("user%06d", i)
	}
	return names
}

// order returns in which order n limiters have their turns in a round: another
// one in each round, but the same in every run.
func order(round, n int) []int {
	return rand.New(rand.NewPCG(1, uint64(round))).Perm(n)
}

// Median returns the middle of some numbers, or the mean of the two that are.
// It is 0 of none.
func Median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
