package storetest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

// lateRefund gives reservations back long after they were made. What of them has
// drained does not come back: else they would all be admitted again at one moment.
func lateRefund(t *trial) {
	t.rule.Window, t.rule.Max = time.Minute, 100
	var open []terms.Result
	for range 10 {
		open = append(open, t.admit(t.charge("k", 100), 0))
		t.Advance(2 * time.Minute)
	}
	admitted := int64(0)
	for _, r := range open {
		for t.take(t.charge("k", 50))[0].Allowed {
			admitted += 50
		}
		t.refund(t.charge("k", 100), r)
	}
	if admitted != 100 {
		t.Errorf("%d were admitted at one moment, want 100", admitted)
	}
	t.left("k", 0)
}

// drainsEvenly wants a bucket to give back of a charge the share that has not drained.
func drainsEvenly(t *trial) {
	t.rule.Window, t.rule.Max = 10*time.Second, 10
	first := t.admit(t.charge("k", 4), 6)
	second := t.admit(t.charge("k", 4), 2)
	t.Advance(4 * time.Second) // half of both
	third := t.admit(t.charge("k", 4), 2)
	t.refund(t.charge("k", 4), first)
	t.left("k", 4)
	t.settle(t.charge("k", 4), second, 3) // which 1 has not drained of
	t.left("k", 5)
	t.refund(t.charge("k", 4), third)
	t.left("k", 9)
	t.Advance(time.Second)
	t.left("k", 10)
}

// refundInAnyOrder gives charges back at once, in any order: nothing is left of them.
func refundInAnyOrder(t *trial) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		name := "k" + string(rune('a'+round))
		var charges []rawstore.Charge
		var results []terms.Result
		for range 5 {
			c := t.charge(name, 1+random.Int64N(2))
			charges, results = append(charges, c), append(results, t.take(c)[0])
			t.Advance(time.Duration(random.IntN(3)) * time.Millisecond)
		}
		for _, i := range random.Perm(len(charges)) {
			t.refund(charges[i], results[i])
		}
		t.left(name, 10)
	}
}

// longCalls has many calls reserve much, last for a while and need little of it: they
// get nearly all of the rest back.
func longCalls(t *trial) {
	t.rule.Window, t.rule.Max = time.Minute, 100_000
	var open []terms.Result
	for range 100 {
		if len(open) == 20 { // each lasts 8 seconds
			t.settle(t.charge("k", 4000), open[0], 500)
			open = open[1:]
		}
		if r := t.take(t.charge("k", 4000))[0]; r.Allowed {
			open = append(open, r)
		} else {
			t.Fatalf("got %+v after 500 of each call were used", r)
		}
		t.Advance(400 * time.Millisecond)
	}
}

// randomRefunds drives a bucket at random, under a changing max and window, and wants no more
// to be admitted in any time than the burst and what drains in it, without what was given back.
func randomRefunds(t *trial) {
	for seed := range t.seeds(6, 30) {
		random := rand.New(rand.NewPCG(seed, 7))
		name := "k" + string(rune('a'+seed))
		t.rule.Burst = 20
		type taken struct {
			charge rawstore.Charge
			result terms.Result
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
			switch {
			case random.IntN(60) == 0:
				if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{t.charge(name, 1)}); err != nil {
					t.Fatal(err)
				}
				all, open = nil, nil // which are no more
			case random.IntN(3) > 0 || len(open) == 0:
				c := t.charge(name, 1+random.Int64N(10))
				if r := t.take(c)[0]; r.Allowed {
					write()
					all = append(all, taken{c, r, c.Cost, drained})
					open = append(open, len(all)-1)
				}
			default:
				i := random.IntN(len(open))
				done := &all[open[i]]
				open = append(open[:i], open[i+1:]...)
				before := t.peek(t.charge(name, 1))[0].ResetAfter
				cost := random.Int64N(done.charge.Cost + 1)
				t.rule.Burst = 20
				c := done.charge
				c.Rule, c.Max = t.charge(name, 1).Rule, t.rule.Max
				t.settle(c, done.result, cost)
				if after := t.peek(t.charge(name, 1))[0].ResetAfter; after != before {
					write()
				}
				done.real = cost
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
		result      terms.Result
		start, cost int64
	}
	for seed := range t.seeds(4, 20) {
		random := rand.New(rand.NewPCG(seed, 11))
		name := "k" + string(rune('a'+seed))
		var line []waiting
		last := int64(math.MinInt64) // when the last turn began
		for range 200 {
			t.Advance(time.Duration(random.ExpFloat64()*700_000) * time.Microsecond)
			for len(line) > 0 && line[0].start <= t.Now() {
				if line[0].start < last+apart {
					t.Fatalf("seed %d: turns %d µs apart", seed, line[0].start-last)
				}
				last, line = line[0].start, line[1:]
			}
			n := len(line)
			switch {
			case n > 0 && random.IntN(2) == 0:
				i := n - 1 - int(random.ExpFloat64())
				if i < 0 {
					continue
				}
				t.refund(t.charge(name, line[i].cost), line[i].result)
				end := t.take(t.charge(name, 1))[0]
				start := t.Now() + end.Delay.Microseconds()
				if i == n-1 && start > line[i].start+1 {
					t.Fatalf("seed %d: the next turn is at %d after the last one, at %d, came back", seed, start, line[i].start)
				}
				line = append(append(line[:i:i], line[i+1:]...), waiting{end, start, 1})
			default:
				cost := 1 + random.Int64N(3)
				r := t.take(t.charge(name, cost))[0]
				line = append(line, waiting{r, t.Now() + r.Delay.Microseconds(), cost})
			}
			slices.SortFunc(line, func(a, b waiting) int { return cmp.Compare(a.start, b.start) }) // one may have taken a gap
		}
	}
}

// leaverOfAnEarlierLine has a call leave whose line was reset since: another one has the turn
// that ends when its own would have.
func leaverOfAnEarlierLine(t *trial) {
	t.rule.Window = time.Second
	c := t.charge("k", 1)
	line := func() (last terms.Result) {
		for i := range int64(3) {
			last = t.admit(c, 9-i)
		}
		return last
	}
	before := line()
	if err := rawstore.On(t.Store).Reset(t.Context(), []rawstore.Charge{c}); err != nil {
		t.Fatal(err)
	}
	t.Advance(10 * time.Millisecond) // where both are of one moment, it is in the line
	last := line()
	t.refund(c, before)
	t.left("k", 7)
	t.refund(c, last)
	t.left("k", 8)
}

// clockStepsFarBack has the clock step back by more than a window: nobody is denied for
// longer than a window for it, whatever was charged, and the limit then counts.
func clockStepsFarBack(t *trial) {
	t.rule.Window = time.Second
	if isQueue(&t.rule) {
		t.rule.Wait = time.Second
	}
	for _, cost := range []int64{1, 7, 10} {
		for _, back := range []time.Duration{500 * time.Millisecond, time.Second, 1001 * time.Millisecond, 3 * time.Second, time.Hour} {
			c := t.charge(back.String()+string(rune('a'+cost)), cost)
			t.admit(c, 10-cost)
			t.Advance(-back)
			if r := t.take(c)[0]; !r.Allowed {
				t.Advance(2*t.rule.Window + t.rule.Window/16)
				if r = t.take(c)[0]; !r.Allowed {
					t.Fatalf("cost %d, %v back: got %+v", cost, back, r)
				}
			}
			if r := t.take(c)[0]; cost == 10 && !isPermits(&t.rule) && r.Allowed && r.Delay == 0 {
				t.Errorf("cost %d, %v back: got %+v beyond the limit", cost, back, r)
			}
		}
	}
}
