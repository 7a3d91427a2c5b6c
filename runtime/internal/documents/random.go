package documents

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// tests are of what no document can say: what callers do at random, or at the same time, what takes
// thousands of calls, and what a clock that runs shows.
var tests = []struct {
	name  string
	run   func(*trial)
	exact bool
	skip  func(*runtime.Rule) bool
}{
	{"refunds at random", randomRefunds, true, func(r *runtime.Rule) bool { return !isBucket(r) || isQueue(r) }},
	{"leavers of a line", leaversOfALine, true, func(r *runtime.Rule) bool { return !isQueue(r) }},
	{"open reservations", openReservations, false, func(r *runtime.Rule) bool { return r.Algorithm != runtime.FixedWindow }},
	{"window", window, false, isCalendar},
	{"concurrent", concurrent, false, func(*runtime.Rule) bool { return false }},
	{"ids", ids, false, isQueue}, // a limiter would wait for its turn
}

// must does a step that has no answer, or returns the charge that it is about.
func (t *trial) must(format string, args ...any) rawstore.Charge {
	t.Helper()
	if answer := t.step(fmt.Sprintf(format, args...)); strings.Contains(answer, "error") || strings.Contains(answer, "CONTRADICTION") {
		t.Fatalf(format+": %s", append(args, answer)...)
	}
	return t.last
}

// seeds returns how many seeds of what is tried at random a trial is to try.
func (t *trial) seeds(quick, full uint64) uint64 {
	if t.Slow {
		return 1
	}
	return effort.Choose(quick, full)
}

// randomRefunds drives a bucket at random, under a changing max and window, and wants no more
// to be admitted in any time than the burst and what drains in it, without what was given back.
func randomRefunds(t *trial) {
	for seed := range t.seeds(6, 30) {
		random := rand.New(rand.NewPCG(seed, 7))
		name := fmt.Sprint("k", seed)
		t.rule.Burst = 20
		type taken struct {
			charge rawstore.Charge
			real   int64 // what is left of its cost in the end
			drain  float64
		}
		var all []taken
		var open []int
		drained, roundings, last := 0.0, 0.0, t.Now()
		for range 150 {
			t.Advance(time.Duration(random.ExpFloat64()*float64(random.IntN(400))) * time.Millisecond)
			t.rule.Window = time.Duration(1+random.IntN(3)) * 5 * time.Second
			t.rule.Max = 5 + random.Int64N(20)
			// A store knows no rate but those of the calls that changed something.
			write := func() {
				drained += float64(t.Now()-last) * float64(t.rule.Max) / float64(t.rule.Window.Microseconds())
				last = t.Now()
			}
			if random.IntN(60) == 0 {
				t.must("reset %s", name)
				all, open = nil, nil // which are no more
			} else if random.IntN(3) > 0 || len(open) == 0 {
				if c := t.must("take %s %d", name, 1+random.Int64N(10)); c.Allowed {
					write()
					all = append(all, taken{c, c.Cost, drained})
					open = append(open, len(all)-1)
				}
			} else {
				i := random.IntN(len(open))
				done := &all[open[i]]
				open = append(open[:i], open[i+1:]...)
				before := t.must("peek %s", name).ResetAfter
				done.real = random.Int64N(done.charge.Cost + 1)
				c := done.charge
				c.Rule, c.Max = t.charge(name).Rule, t.rule.Max
				t.named["a"] = c
				t.must("settle a %d", done.real)
				if after := t.must("peek %s", name).ResetAfter; after != before {
					write()
				}
				roundings++
			}
			// In any time that begins with a charge and ends now.
			used := int64(0)
			for i := len(all) - 1; i >= 0; i-- {
				used += all[i].real
				if most := 20 + drained - all[i].drain + 1e-6*roundings; float64(used) > most+1e-9*math.Abs(most) {
					t.Fatalf("seed %d: %d admitted, and only the burst of 20 and %v drained since", seed, used, drained-all[i].drain)
				}
			}
		}
	}
}

// leaversOfALine has calls come to a queue and leave it, whoever and whenever: no two
// turns are ever closer than window/max, and the last one in line comes back.
func leaversOfALine(t *trial) {
	t.rule.Window, t.rule.Max, t.rule.Burst = 10*time.Second, 10, 1000
	const apart = int64(time.Second / time.Microsecond)
	type waiting struct {
		charge rawstore.Charge
		start  int64
	}
	for seed := range t.seeds(4, 20) {
		random := rand.New(rand.NewPCG(seed, 11))
		name := fmt.Sprint("k", seed)
		var line []waiting
		last := int64(math.MinInt64) // when the last turn began
		enter := func(cost int64) waiting {
			c := t.must("take %s %d", name, cost)
			return waiting{c, t.Now() + c.Delay.Microseconds()}
		}
		for range 200 {
			t.Advance(time.Duration(random.ExpFloat64()*700_000) * time.Microsecond)
			for len(line) > 0 && line[0].start <= t.Now() {
				if line[0].start < last+apart {
					t.Fatalf("seed %d: turns %d µs apart", seed, line[0].start-last)
				}
				last, line = line[0].start, line[1:]
			}
			n := len(line)
			if n > 0 && random.IntN(2) == 0 {
				i := n - 1 - int(random.ExpFloat64())
				if i < 0 {
					continue
				}
				t.named["a"] = line[i].charge
				t.must("refund a")
				next := enter(1)
				if i == n-1 && next.start > line[i].start+1 {
					t.Fatalf("seed %d: the next turn is at %d after the last one, at %d, came back", seed, next.start, line[i].start)
				}
				line = append(append(line[:i:i], line[i+1:]...), next)
			} else {
				line = append(line, enter(1+random.Int64N(3)))
			}
			slices.SortFunc(line, func(a, b waiting) int { return cmp.Compare(a.start, b.start) }) // one may have taken a gap
		}
	}
}

// openReservations fills a key with reservations up to their bound. One that is settled makes
// room.
func openReservations(t *trial) {
	const most, together = 10_000, 100
	if t.Slow {
		t.Skip("takes many calls")
	}
	t.rule.Max, t.rule.Reserve = 1_000_000, time.Hour
	batch := "take k" + strings.Repeat(", k", together-1) + " as last"
	for range most / together {
		if last := t.must("%s", batch); !last.Allowed {
			t.Fatalf("%+v", last)
		}
	}
	if r := t.must("take k"); r.Allowed || r.RetryAfter <= 59*time.Minute || r.RetryAfter > time.Hour {
		t.Errorf("%+v, want it refused until the first lapses", r)
	}
	t.must("settle last 1")
	if r := t.must("take k"); !r.Allowed || r.Remaining != t.rule.Max-most-1 {
		t.Errorf("%+v after one was settled", r)
	}
}

// window wants a limit to be whole again when its only charge has left, and a refusal to say when,
// as exactly as the time of both is known on a clock that runs.
func window(t *trial) {
	t.rule.Window = 200 * time.Millisecond
	for try := range 5 { // the machine may sleep
		begin := t.Now()
		reset := t.must("take k%d 10", try).ResetAfter.Microseconds()
		charged, before := t.Now(), t.Now()
		refused, after := t.must("take k%d 10", try), t.Now()
		if refused.Allowed {
			if after < begin+reset {
				t.Fatalf("admitted at most %d µs after a whole window's cost: %+v", after-begin, refused)
			}
			continue
		}
		for _, told := range []time.Duration{refused.RetryAfter, refused.ResetAfter} {
			if us := told.Microseconds(); us < begin+reset-after || us > charged+reset-before {
				t.Errorf("told %d µs, want from %d to %d", us, begin+reset-after, charged+reset-before)
			}
		}
		t.Advance(time.Duration(charged+reset-t.Now()) * time.Microsecond)
		if again := t.must("take k%d 10", try); !again.Allowed {
			t.Errorf("got %+v after the window", again)
		}
		return
	}
	t.Error("no refusal within a window in five tries")
}

func concurrent(t *trial) {
	t.rule.Max = 50
	charge := t.charge("k")
	var admitted atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 10 {
				calls := []rawstore.Call{{Charges: []rawstore.Charge{charge}}}
				if err := rawstore.Wrap(t.Store).Take(t.Context(), calls); err != nil {
					t.Error(err)
				} else if calls[0].Charges[0].Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if admitted.Load() != 50 {
		t.Errorf("admitted %d of 80 calls, want 50", admitted.Load())
	}
}

// ids wants no two callers to share a limit, whatever they are called.
func ids(t *trial) {
	t.rule.Prefix = Prefix(t.T)
	t.rule.Max = 2
	limiter := runtime.New(t.Store, runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	keys := []*runtime.Key{runtime.NewKey(), runtime.NewKey().AddString("a").AddString("b"), runtime.NewKey().AddString("").AddString("")}
	for _, id := range []string{
		"}x", "{a}b", "*", "a", "{a}", "%7Ba%7D", ":", "a:b", "\x00", "\n", "%", "%packed", "é",
		strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20-1) + "y", strings.Repeat("{", 1<<20),
	} {
		keys = append(keys, runtime.NewKey().AddString(id))
	}
	for round := range int64(3) {
		for _, key := range keys {
			d, err := limiter.Take(t.Context(), t.rule.Limit(key))
			if round < 2 && err != nil || round == 2 && !errors.Is(err, runtime.ErrLimited) || d.Remaining != max(0, 1-round) {
				t.Errorf("key %.20q: got %+v, %v in round %d", key, d, err, round)
			}
		}
	}
	// The key of an empty id is that of no id at all: a rule has one or the other.
	d, err := limiter.Peek(t.Context(), t.rule.Limit(runtime.NewKey().AddString("")))
	if err != nil || d.Remaining != 0 {
		t.Errorf("empty id: got %+v, %v", d, err)
	}
}
