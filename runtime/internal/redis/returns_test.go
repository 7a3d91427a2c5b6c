package redis

import (
	"context"
	"encoding"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A ledger is a Redis that notes what it executes on which key. Requests reach it after a time
// of their own, and so do answers reach their callers: as from connections of which some are slow.
type ledger struct {
	fakeClient
	delay func() time.Duration

	mu       sync.Mutex
	returned map[string]int // returns that were executed, by key
	taken    func(caller int, key string)
}

func (l *ledger) Execute(_ context.Context, all []*rediswire.Script) {
	time.Sleep(l.delay())
	l.mu.Lock()
	for _, s := range all {
		keys, settles := admit(s)
		var callers []int
		if !settles {
			callers = callersOf(s.Args[3:][keys+1:], keys)
		}
		for i := range keys {
			bytes, _ := s.Args[3+i].(encoding.BinaryMarshaler).MarshalBinary()
			if settles {
				l.returned[string(bytes)]++
			} else {
				l.taken(callers[i], string(bytes))
			}
		}
	}
	l.mu.Unlock()
	time.Sleep(l.delay())
}

// newLedger returns one whose requests take a time each way.
func newLedger(punctual bool, delay func() time.Duration) *ledger {
	about := rediswire.About{Punctual: punctual, Most: 40}
	return &ledger{fakeClient: fakeClient{about: about}, returned: map[string]int{}, delay: delay}
}

// callersOf returns whose each key of a script that takes is, from the arguments behind its
// operation, see take.lua and take_one.lua. Callers differ in their windows.
func callersOf(args []any, keys int) (callers []int) {
	number := func(i int) int { return int(*args[i].(*int64)) }
	if len(args) == 6 {
		return []int{number(0) - window}
	}
	run := 1 + 6*number(0)
	for len(callers) < keys && run+3 < len(args) {
		term := max(number(run), -number(run))
		for range max(number(run+3), -number(run+3)) {
			callers = append(callers, number(1+6*(term-1)+1)-window)
		}
		run += 4
	}
	return callers
}

// window is that of the first caller, in microseconds.
const window = 1e6

// noted counts the returns that are answered.
type noted struct{ wait *sync.WaitGroup }

func (n noted) Done(error) { n.wait.Done() }

// Whatever is asked about a key is executed after the returns of it that were handed over
// before, whichever connections are slow and however many call; and nobody waits for ever.
func TestReturnsComeFirst(t *testing.T) {
	for seed := range effort.Choose(40, 400) {
		for _, callers := range []int{1, 2, 3, 8, 40} {
			synctest.Test(t, func(t *testing.T) { comeFirst(t, uint64(seed), callers) })
		}
	}
}

func comeFirst(t *testing.T, seed uint64, callers int) {
	waiters = newWaiters()
	random := rand.New(rand.NewPCG(seed, uint64(callers)))
	var mu sync.Mutex // of random
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	// Two trips of 10 ms fit into the time that a waiter is held.
	slowest := []time.Duration{1, 200 * time.Microsecond, 3 * time.Millisecond, 10 * time.Millisecond}[draw(4)]
	delay := func() time.Duration { return time.Duration(draw(int(slowest))) / 2 }
	l := newLedger(draw(2) == 0, delay)
	given := map[string]int{}
	type call struct {
		caller int
		key    string
	}
	ahead := map[call]int{} // returns that were executed before the last call of a caller on a key
	l.taken = func(caller int, key string) { ahead[call{caller, key}] = l.returned[key] }
	cfg := quiet(t)
	cfg.Timeout = 2 * time.Second
	cfg.Undecided = func(err error, _ int) { t.Errorf("seed %d: %v", seed, err) }
	b := New(l, cfg).only
	keys := 1 + draw(4)
	var all, returns sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for range 30 {
				names := []string{fmt.Sprint(draw(keys))}
				if other := fmt.Sprint(draw(keys)); other != names[0] && draw(3) == 0 {
					names = append(names, other)
				}
				limit := terms.Terms{Algorithm: algorithm.LogZSet, Window: window + int64(caller), Max: 1e6}
				cost := [4]int64{1, 1, 1, 250}[draw(4)]
				mu.Lock()
				var want []int
				var charges []terms.Charge
				work := int64(0)
				for _, key := range names {
					want = append(want, given[key])
					charges = append(charges, terms.Charge{Terms: limit, Key: []byte(key), Cost: cost})
					work += charges[len(charges)-1].Work()
				}
				mu.Unlock()
				w := waiterOf(script.Take, 0, []terms.Call{{Charges: charges}}, work, clock.Now())
				if err := b.Do(t.Context(), w); err != nil {
					t.Errorf("seed %d, %d callers: %v", seed, callers, err)
					return
				}
				w.Free()
				l.mu.Lock()
				for i, key := range names {
					if n := ahead[call{caller, key}]; n < want[i] {
						t.Errorf("seed %d, %d callers: a call on %s was executed after %d of %d returns", seed, callers, key, n, want[i])
					}
				}
				l.mu.Unlock()
				for _, key := range names {
					if draw(5) == 0 {
						continue
					}
					returns.Add(1)
					c := refund(key, [4]int64{1, 1, 1, 250}[draw(4)])
					if !b.Return(&c, 0, noted{&returns}) {
						t.Errorf("seed %d: a return is not taken", seed)
						returns.Done()
						continue
					}
					mu.Lock()
					given[key]++
					mu.Unlock()
				}
				if draw(3) == 0 {
					time.Sleep(time.Duration(draw(int(2 * idleTime))))
				}
			}
		})
	}
	all.Wait()
	returns.Wait()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.busy)+len(b.held)+len(b.heavy)+len(b.queue)+b.idle+b.inFlight != 0 {
		t.Errorf("seed %d, %d callers: left are %d busy keys, %d held, %d heavy, %d queued, %d idle, %d loops",
			seed, callers, len(b.busy), len(b.held), len(b.heavy), len(b.queue), b.idle, b.inFlight)
	}
}

// refund returns a charge that gives back a call.
func refund(key string, cost int64) terms.Charge {
	limit := terms.Terms{Algorithm: algorithm.LogZSet, Window: 1e6, Max: 1e6}
	return terms.Charge{Terms: limit, Key: []byte(key), Cost: -cost, Charged: cost, Result: terms.Result{At: 1}}
}

// What was charged for callers whose contexts have ended comes back, whenever that was.
func TestLeftIsReturned(t *testing.T) {
	for _, leaves := range []time.Duration{1, 6, 10, 19, 20, 21, 39, 60} {
		synctest.Test(t, func(t *testing.T) {
			waiters = newWaiters()
			took := 0
			l := newLedger(false, func() time.Duration { return 20 * time.Millisecond })
			l.taken = func(int, string) { took++ }
			cfg := quiet(t)
			cfg.Timeout = time.Second
			b := New(l, cfg).only
			limit := terms.Terms{Algorithm: algorithm.FixedWindow, Window: window, Max: 1e6}
			told := 0
			for range 5 {
				w := waiterOf(script.Take, 0, []terms.Call{{Charges: []terms.Charge{{Terms: limit, Key: []byte("k"), Cost: 1}}}}, terms.Work, clock.Now())
				ctx, cancel := context.WithTimeout(t.Context(), leaves*time.Millisecond)
				if b.Do(ctx, w) == nil {
					told++
				}
				cancel()
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if took-l.returned["k"] != told {
				t.Errorf("leaving after %d ms: %d are charged and %d come back, and %d callers are told", leaves, took, l.returned["k"], told)
			}
		})
	}
}

// A return is settled within a timeout of any length, by itself and behind others.
func TestReturnsOfEveryTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{
		50 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 50 * time.Millisecond,
		time.Minute,
	} {
		for _, n := range []int{1, 2, maxIdle + 1} {
			synctest.Test(t, func(t *testing.T) {
				waiters = newWaiters()
				l := newLedger(false, func() time.Duration { return 0 })
				cfg := quiet(t)
				cfg.Timeout = timeout
				cfg.Undecided = func(err error, _ int) { t.Errorf("%v, %d returns: %v", timeout, n, err) }
				b := New(l, cfg).only
				var returns sync.WaitGroup
				returns.Add(n)
				for range n {
					c := refund("k", 1)
					if !b.Return(&c, 0, noted{&returns}) {
						t.Fatal("a return is not taken")
					}
				}
				returns.Wait()
				synctest.Wait()
				if l.returned["k"] != n || b.idle != 0 || len(b.queue) != 0 {
					t.Errorf("%v: %d of %d returns, %d idle, %d queued", timeout, l.returned["k"], n, b.idle, len(b.queue))
				}
			})
		}
	}
}
