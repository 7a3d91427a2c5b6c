package runtime_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A distantStore is a store on the other side of a network, on a clock of its own.
type distantStore struct {
	terms.Store
	charged atomic.Int64
	windows *sync.Map            // the end of the fixed window of each charge, by its time
	delay   func() time.Duration // of a request, and of a reply
}

func (s *distantStore) Take(ctx context.Context, calls []terms.Call) error {
	time.Sleep(s.delay())
	err := s.Store.Take(ctx, calls)
	for i := range calls {
		if c := &calls[i].Charges[0]; c.At != 0 {
			s.charged.Add(c.Cost)
			s.windows.Store(c.At, c.At+c.ResetAfter.Microseconds())
		}
	}
	time.Sleep(s.delay())
	return err
}

// eachCaller has callers of some processes call on one store, each process by a limiter.
func eachCaller(store *runtime.MemoryStore, windows *sync.Map, processes, callers int, delay func(process int) func() time.Duration, call func(l *runtime.Limiter, process, caller int)) {
	concurrently(processes, func(p int) {
		limiter := runtime.New(rawstore.Shared(&distantStore{Store: rawstore.Wrap(store).Store, windows: windows, delay: delay(p)}, store), quiet)
		concurrently(callers, func(c int) { call(limiter, p, c) })
		if err := limiter.Close(); err != nil {
			panic(err)
		}
	})
}

// A leasedCall is a call that was admitted, and when, in microseconds.
type leasedCall struct {
	at, cost int64
	window   int64 // the end of the fixed window that was charged
}

// A leaseTrial is some processes that call on one key.
type leaseTrial struct {
	rule      runtime.Rule
	processes int
	callers   int           // of each
	pause     time.Duration // between two calls of one, on average
	delay     time.Duration // of the network, at most
	offset    time.Duration // of the store's clock
	windows   int
	settle    bool // some calls are refunded
}

// drawTrial draws a trial from all that there are of an algorithm.
func drawTrial(r *rand.Rand, rule runtime.Rule) leaseTrial {
	rule.Name = "r"
	rule.Window = time.Duration(20+r.IntN(2000)) * time.Millisecond
	rule.Lease = max(time.Millisecond, time.Duration(r.Float64()*r.Float64()*0.95*float64(rule.Window)).Truncate(time.Microsecond))
	rule.Max = 1 + int64(3000*r.Float64()*r.Float64()*r.Float64())
	if rule.Algorithm == runtime.TokenBucket && r.IntN(2) == 0 {
		rule.Burst = 1 + r.Int64N(2*rule.Max)
	}
	t := leaseTrial{rule: rule, processes: 1 + r.IntN(8), callers: 1 + r.IntN(12), windows: 3}
	t.delay = time.Duration(r.Float64() * r.Float64() * float64(rule.Lease) * 0.7)
	t.offset = time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour
	load := 0.3 + 3*r.Float64()
	t.pause = max(time.Microsecond, time.Duration(float64(rule.Window)*float64(t.processes*t.callers)/(load*float64(rule.Max))))
	t.settle = rule.Algorithm != runtime.TokenBucket && rule.Algorithm != runtime.LeakyBucket && r.IntN(3) == 0
	return t
}

// mood returns by how much longer a process pauses now than on average. It changes
// in the time of a lease: what was leased in haste is then used at leisure, or late.
func (trial leaseTrial) mood(seed uint64, process int) float64 {
	phase := uint64(time.Now().UnixNano()) / uint64(trial.rule.Lease*2/3)
	r := rand.New(rand.NewPCG(seed+phase, uint64(process)))
	return []float64{0.1, 0.3, 1, 1, 5}[r.IntN(5)]
}

// run makes the calls, and returns those that were admitted, in order, by the store's
// clock, and how many of them by leases.
func (trial leaseTrial) run(seed uint64) (all []leasedCall, leased int) {
	store := runtime.NewMemoryStore()
	now := func() int64 { return time.Now().Add(trial.offset).UnixMicro() }
	store.SetClock(now)
	end := time.Now().Add(time.Duration(trial.windows) * trial.rule.Window)
	var calls recorder[leasedCall]
	var byLeases atomic.Int64
	var windows sync.Map
	delay := func(process int) func() time.Duration {
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(seed, uint64(process)))
		return func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			if r.IntN(20) == 0 {
				return 2 * trial.delay
			}
			return time.Duration(r.Float64() * float64(trial.delay))
		}
	}
	eachCaller(store, &windows, trial.processes, trial.callers, delay, func(limiter *runtime.Limiter, process, caller int) {
		r := rand.New(rand.NewPCG(seed, uint64(process*1000+caller)))
		for time.Now().Before(end) {
			cost := 1 + r.Int64N(3)*r.Int64N(2)
			d, err := limiter.Take(context.Background(), trial.rule.Limit(nil).WithCost(cost))
			switch {
			case err != nil:
			case trial.settle && r.IntN(4) == 0:
				time.Sleep(time.Duration(r.Float64() * float64(trial.rule.Lease)))
				_ = limiter.Refund(context.Background(), d)
			default:
				over, _ := windows.Load(d.ChargedAt())
				a := leasedCall{d.ChargedAt(), cost, over.(int64)}
				if d.Source == rule.SourceLease {
					a.at = now()
					byLeases.Add(1)
				}
				calls.add(a)
			}
			time.Sleep(time.Duration(r.ExpFloat64() * float64(trial.pause) * trial.mood(seed, process)))
		}
	})
	all = calls.all()
	slices.SortStableFunc(all, func(a, b leasedCall) int { return cmp.Compare(a.at, b.at) })
	return all, int(byLeases.Load())
}

// excess returns by how much the fullest window holds more than max, or what a
// bucket's level is above its burst at most. It is 0 or less if the limit held.
func excess(rule *runtime.Rule, all []leasedCall) (most float64) {
	most = -1e18
	window := rule.Window.Microseconds()
	switch rule.Algorithm {
	case runtime.TokenBucket, runtime.LeakyBucket:
		level, last := 0.0, int64(0)
		burst := float64(cmp.Or(rule.Burst, rule.Max))
		for _, a := range all {
			level = max(0, level-float64(a.at-last)*float64(rule.Max)/float64(window)) + float64(a.cost)
			last = a.at
			most = max(most, level-burst-1e-6)
		}
	case runtime.FixedWindow:
		used := map[int64]int64{}
		for _, a := range all {
			used[a.window] += a.cost
			if a.at >= a.window {
				used[a.window] += rule.Max // it is of another window
			}
			most = max(most, float64(used[a.window]-rule.Max))
		}
	default:
		first, used := 0, int64(0)
		for _, a := range all {
			for used += a.cost; all[first].at <= a.at-window; first++ {
				used -= all[first].cost
			}
			most = max(most, float64(used-rule.Max))
		}
	}
	return most
}

var leasedRules = map[string]runtime.Rule{
	"log":           {},
	"log in slices": {Resolution: time.Microsecond},
	"counter":       {Algorithm: runtime.SlidingCounter},
	"layered":       {Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)},
	"auto":          {Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()},
	"fixed window":  {Algorithm: runtime.FixedWindow},
	"token bucket":  {Algorithm: runtime.TokenBucket},
	"leaky bucket":  {Algorithm: runtime.LeakyBucket},
}

// No window ever holds more than max, whatever the lease, the load, the number of
// processes, the network and the clocks are.
func TestLeaseNeverExceeds(t *testing.T) {
	t.Parallel()
	trials := effort.Choose(8, 300)
	for name, rule := range leasedRules {
		t.Run(name, func(t *testing.T) {
			admitted, leased := 0, 0
			random := seed.New(t)
			for i := range trials {
				seed := random.Uint64()
				trial := drawTrial(rand.New(rand.NewPCG(seed, 0)), rule)
				synctest.Test(t, func(t *testing.T) {
					all, by := trial.run(seed)
					admitted, leased = admitted+len(all), leased+by
					if over := excess(&trial.rule, all); over > 0 {
						t.Errorf("trial %d, seed %d: %.2f too many of %d calls, %d by leases\n%+v", i, seed, over, len(all), by, trial)
					}
				})
			}
			t.Logf("%d of %d calls admitted by leases", leased, admitted)
			if leased == 0 {
				t.Errorf("leases admitted none of %d calls", admitted)
			}
		})
	}
}

// Where a trip takes longer than a lease little is charged in vain, though a bucket
// takes nothing back.
func TestLeaseShorterThanTrip(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rule := &runtime.Rule{Name: "hot", Algorithm: runtime.TokenBucket, Window: time.Second, Lease: 10 * time.Millisecond, Max: 1_000_000}
		memory := runtime.NewMemoryStore()
		s := &distantStore{Store: rawstore.Wrap(memory).Store, windows: new(sync.Map), delay: func() time.Duration { return 8 * time.Millisecond }}
		l := runtime.New(rawstore.Shared(s, memory), quiet)
		var admitted atomic.Int64
		concurrently(20, func(int) { admitted.Add(int64(passing(t, l, rule.Limit(nil), 1000))) })
		ok(t, l.Close())
		if n := s.charged.Load(); admitted.Load() != 20_000 || n > 22_500 {
			t.Errorf("%d calls were admitted, and %d charged", admitted.Load(), n)
		}
	})
}

// Callers that try many keys fill no memory, and keep no hot key from its lease.
func TestLeaseTableIsBounded(t *testing.T) {
	t.Parallel()
	testLease(t, nil, func(l *leaseTest) {
		for i := range int64(10_000) {
			_, _ = l.limiter.Take(l.Context(), l.rule.Limit(runtime.NewKey().AddInt(i)))
		}
		if keys, _ := l.limiter.Leases(); keys > 8192 {
			l.Errorf("%d keys", keys)
		}
		l.fill()
	})
}
