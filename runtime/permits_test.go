package runtime_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// permitRule returns a rule of so many permits that live for 30 seconds.
func permitRule(max int64) *runtime.Rule {
	return &runtime.Rule{Name: "permits", Algorithm: runtime.Concurrency, Window: 30 * time.Second, Max: max}
}

// A call holds its permits for as long as it runs, and no longer.
func TestPermitsAreHeld(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(runtime.Store) runtime.Store{
		"fast path": func(s runtime.Store) runtime.Store { return s },
		"other way": func(s runtime.Store) runtime.Store { return pass{s} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter := runtime.New(wrap(runtime.NewMemoryStore()), quiet)
				limit := permitRule(5).Limit(key("k"))
				two := limit.WithCost(2)
				d := taken(t, limiter, two)
				for minute := range 30 {
					time.Sleep(time.Minute + time.Duration(minute)*time.Millisecond)
					wantLeft(t, limiter, limit, 3)
				}
				other := taken(t, limiter, limit.WithCost(3))
				denied(t, limiter, limit)
				if diff := cmp.Diff(map[string]int64{"permits": 5}, limiter.InFlight()); diff != "" {
					t.Errorf("in flight (-want +got):\n%s", diff)
				}
				settled(t, limiter, d, two)
				if err := limiter.Settle(t.Context(), d, two); err != runtime.ErrSettled {
					t.Errorf("settled twice: %v", err)
				}
				wantLeft(t, limiter, limit, 2)
				limiter.SettleLater(t.Context(), other, limit.WithCost(3))
				synctest.Wait()
				time.Sleep(time.Millisecond)
				wantLeft(t, limiter, limit, 5)
				if diff := cmp.Diff(map[string]int64{"permits": 0}, limiter.InFlight()); diff != "" {
					t.Errorf("in flight (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A limiter that is closed renews nothing: its permits lapse, and can be returned
// before.
func TestPermitsLapse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := runtime.NewMemoryStore()
		limiter, other := runtime.New(store, quiet), runtime.New(store, quiet)
		limit := permitRule(2).Limit(nil)
		d := taken(t, limiter, limit)
		taken(t, limiter, limit)
		time.Sleep(time.Hour)
		ok(t, limiter.Close())
		settled(t, limiter, d, limit)
		wantLeft(t, other, limit, 1)
		time.Sleep(30 * time.Second)
		wantLeft(t, other, limit, 2)
	})
}

// scripted is a store of another type whose operations a test changes.
type scripted struct {
	*runtime.MemoryStore
	renew  func(ctx context.Context, calls []terms.Call) error
	settle func(ctx context.Context, charges []terms.Charge) error
	takes  atomic.Int64
}

func (s *scripted) Take(ctx context.Context, calls []terms.Call) error {
	s.takes.Add(1)
	return s.MemoryStore.Take(ctx, calls)
}

func (s *scripted) Renew(ctx context.Context, calls []terms.Call) error {
	if s.renew != nil {
		return s.renew(ctx, calls)
	}
	return s.MemoryStore.Renew(ctx, calls)
}

func (s *scripted) Settle(ctx context.Context, charges []terms.Charge) error {
	if s.settle != nil {
		return s.settle(ctx, charges)
	}
	return s.MemoryStore.Settle(ctx, charges)
}

// copied returns calls that a store may keep.
func copied(calls []terms.Call) []terms.Call {
	out := make([]terms.Call, len(calls))
	for i, call := range calls {
		for _, c := range call.Charges {
			c.Key = append([]byte(nil), c.Key...)
			out[i].Charges = append(out[i].Charges, c)
		}
	}
	return out
}

// A return that overtakes a renewal is made again, when the renewal is answered
// and when it is not: nobody is kept out by a permit that nobody holds.
func TestReturnOvertakesRenewal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		late  time.Duration // after the return, when the store executes the renewal
		lost  bool          // there is no answer to it
		freed time.Duration // when the permit is free at the latest, after late
	}{
		"answered":        {10 * time.Millisecond, false, time.Millisecond},
		"lost":            {10 * time.Millisecond, true, 1500 * time.Millisecond},
		"lost for long":   {20 * time.Second, true, 1500 * time.Millisecond},
		"lost for longer": {time.Minute, true, 30 * time.Second}, // it lapses
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &scripted{MemoryStore: runtime.NewMemoryStore()}
				limiter := runtime.New(store, quiet)
				limit := permitRule(1).Limit(nil)
				begun, once := make(chan struct{}), sync.Once{}
				executed := make(chan struct{})
				store.renew = func(ctx context.Context, calls []terms.Call) error {
					first := false
					once.Do(func() { first = true })
					if !first {
						return store.MemoryStore.Renew(ctx, calls)
					}
					calls = copied(calls)
					close(begun)
					execute := func() {
						time.Sleep(test.late)
						_ = store.MemoryStore.Renew(context.Background(), calls)
						close(executed)
					}
					if test.lost {
						go execute()
						return errBroken
					}
					execute()
					return nil
				}
				d := taken(t, limiter, limit)
				<-begun
				settled(t, limiter, d, limit)
				wantLeft(t, limiter, limit, 1)
				<-executed
				time.Sleep(test.freed)
				synctest.Wait()
				wantLeft(t, limiter, limit, 1)
			})
		})
	}
}

// A return that fails is made again, in the background.
func TestReturnIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scripted{MemoryStore: runtime.NewMemoryStore()}
		limiter := runtime.New(store, quiet)
		limit := permitRule(1).Limit(nil)
		broken := time.Now().Add(10 * time.Second)
		returns := 0
		store.settle = func(ctx context.Context, charges []terms.Charge) error {
			if returns++; time.Now().Before(broken) {
				return errBroken
			}
			return store.MemoryStore.Settle(ctx, charges)
		}
		d := taken(t, limiter, limit)
		if err := limiter.Settle(t.Context(), d, limit); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
		if got := limiter.InFlight()["permits"]; got != 0 {
			t.Errorf("%d in flight", got)
		}
		time.Sleep(12 * time.Second)
		wantLeft(t, limiter, limit, 1)
		synctest.Wait()
		if returns > 30 {
			t.Errorf("%d returns in ten seconds", returns)
		}
		last := returns
		time.Sleep(time.Hour)
		synctest.Wait()
		if returns != last {
			t.Errorf("%d more returns afterwards", returns-last)
		}
	})
}

// A renewal that fails is tried again in time: a store may be away for two thirds
// of the window.
func TestRenewalIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &scripted{MemoryStore: runtime.NewMemoryStore()}
		limiter := runtime.New(store, quiet)
		limit := permitRule(1).Limit(nil)
		var broken atomic.Bool
		store.renew = func(ctx context.Context, calls []terms.Call) error {
			if broken.Load() {
				return errBroken
			}
			return store.MemoryStore.Renew(ctx, calls)
		}
		_ = taken(t, limiter, limit)
		for range 10 {
			broken.Store(true)
			time.Sleep(18 * time.Second)
			broken.Store(false)
			for range 20 {
				time.Sleep(time.Second)
				wantLeft(t, limiter, limit, 0)
			}
		}
	})
}

// A reset forgets the permits of calls that run: they are not counted again, and
// those of later calls are.
func TestResetOfPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limiter := inMemory()
		limit := permitRule(2).Limit(nil)
		both := limit.WithCost(2)
		first := taken(t, limiter, both)
		ok(t, limiter.Reset(t.Context(), limit))
		second := taken(t, limiter, limit)
		for range 100 {
			time.Sleep(time.Second)
			wantLeft(t, limiter, limit, 1)
		}
		settled(t, limiter, first, both)
		wantLeft(t, limiter, limit, 1)
		settled(t, limiter, second, limit)
		wantLeft(t, limiter, limit, 2)
	})
}

// A settled cost that is no cost keeps no permit from being returned.
func TestInvalidSettlementReturnsPermits(t *testing.T) {
	t.Parallel()
	for _, later := range []bool{false, true} {
		limiter := inMemory()
		rate := (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 10}).Limit(nil)
		permit := permitRule(1).Limit(nil)
		d := taken(t, limiter, rate.WithCost(4), permit)
		wrong := rate.WithCost(4).WithSettled(-1)
		if later {
			limiter.SettleLater(t.Context(), d, wrong, permit)
		} else if err := limiter.Settle(t.Context(), d, wrong, permit); !errors.Is(err, runtime.ErrInvalidLimit) {
			t.Errorf("got %v", err)
		}
		if left(t, limiter, permit) != 1 || left(t, limiter, rate) != 6 {
			t.Errorf("left %d of the permits and %d of the rate", left(t, limiter, permit), left(t, limiter, rate))
		}
	}
}

// Permits beside rates: all or none is charged, and only the permits come back.
func TestPermitsBesideRates(t *testing.T) {
	t.Parallel()
	limiter := inMemory()
	rate := (&runtime.Rule{Name: "rate", Window: time.Hour, Max: 3}).Limit(nil)
	permit := permitRule(1).Limit(nil)
	shadow := *permitRule(1)
	shadow.Name, shadow.Mode = "shadow", runtime.ModeShadow
	all := []runtime.Limit{rate, permit, shadow.Limit(nil)}
	d := taken(t, limiter, all...)
	denied(t, limiter, all...)
	wantLeft(t, limiter, rate, 2)
	want := map[string]int64{"permits": 1, "shadow": 1}
	if got := limiter.InFlight(); !maps.Equal(got, want) {
		t.Errorf("in flight: %v", got)
	}
	settled(t, limiter, d, all...)
	if left(t, limiter, rate) != 2 || left(t, limiter, permit) != 1 || left(t, limiter, shadow.Limit(nil)) != 1 {
		t.Error("not only the permits came back")
	}
	// Shadow permits deny nobody.
	two := []runtime.Decision{taken(t, limiter, all[2]), taken(t, limiter, all[2])}
	for i, out := range limiter.TakeEach(t.Context(), permit, permit, rate) {
		if (out.Err == nil) != (i != 1) {
			t.Errorf("outcome %d: %v", i, out.Err)
		}
		two = append(two, out.Decision)
	}
	for i, limit := range []runtime.Limit{all[2], all[2], permit, permit, rate} {
		settled(t, limiter, two[i], limit)
	}
	want = map[string]int64{"permits": 0, "shadow": 0}
	if got := limiter.InFlight(); !maps.Equal(got, want) {
		t.Errorf("in flight at the end: %v", got)
	}
}

// While the store fails, a rule that fails locally has permits in the process,
// which are renewed and returned like others.
func TestLocalPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, replicas := range []int{1, 2} {
			limiter := runtime.New(new(brokenStore), quiet, runtime.WithFailurePolicy(runtime.FailLocal), runtime.WithReplicas(replicas))
			limit := permitRule(4).Limit(nil)
			var all []runtime.Decision
			for {
				d, err := limiter.Take(t.Context(), limit)
				if err != nil {
					break
				}
				all = append(all, d)
			}
			if len(all) != 4/replicas {
				t.Fatalf("%d permits for one of %d replicas", len(all), replicas)
			}
			time.Sleep(time.Hour)
			synctest.Wait() // a permit that is renewed while it is returned is back a little later
			denied(t, limiter, limit)
			for i, d := range all {
				settled(t, limiter, d, limit)
				again := taken(t, limiter, limit)
				denied(t, limiter, limit)
				settled(t, limiter, again, limit)
				all[i] = taken(t, limiter, limit)
			}
			// A call that costs more than its share takes all of it.
			for _, d := range all {
				settled(t, limiter, d, limit)
			}
			d := taken(t, limiter, limit.WithCost(3))
			settled(t, limiter, d, limit.WithCost(3))
			if got := limiter.InFlight()["permits"]; got != 0 {
				t.Errorf("%d in flight", got)
			}
			for range 4 / replicas {
				taken(t, limiter, limit)
			}
			_ = limiter.Close()
		}
	})
}

// Overrides, load and switches change a limit of permits like any other.
func TestPermitsFollowOverrides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var set atomic.Pointer[runtime.Overrides]
		set.Store(new(runtime.Overrides))
		source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return *set.Load(), nil })
		limiter := inMemory(runtime.WithOverrides(source, time.Second))
		limit := permitRule(2).Limit(nil)
		override := func(o runtime.Override) {
			set.Store(&runtime.Overrides{Rules: map[string]runtime.Override{"permits": o}})
			time.Sleep(2 * time.Second)
		}
		first, second := taken(t, limiter, limit), taken(t, limiter, limit)
		override(runtime.Override{Max: new(int64(5))})
		third := taken(t, limiter, limit)
		wantLeft(t, limiter, limit, 2)
		override(runtime.Override{Max: new(int64(1))})
		settled(t, limiter, first, limit)
		denied(t, limiter, limit)
		off := false
		override(runtime.Override{Enabled: &off})
		free := taken(t, limiter, limit)
		settled(t, limiter, free, limit)
		settled(t, limiter, second, limit) // of a rule that is switched off by now
		override(runtime.Override{})
		wantLeft(t, limiter, limit, 1)
		settled(t, limiter, third, limit)
		wantLeft(t, limiter, limit, 2)
		ok(t, limiter.Close())
	})
}

// A process cap stands before permits, and is none itself.
func TestPermitsBehindCap(t *testing.T) {
	t.Parallel()
	limit := permitRule(2).Limit(nil)
	limiter := runtime.New(runtime.NewMemoryStore(), quiet,
		runtime.WithProcessCap(&runtime.Rule{Name: "cap", Window: time.Hour, Max: 4, Algorithm: runtime.FixedWindow}))
	for i := range 4 {
		d, err := limiter.Take(t.Context(), limit)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		settled(t, limiter, d, limit)
	}
	if d, err := limiter.Take(t.Context(), limit); !errors.Is(err, runtime.ErrLimited) || d.Source != runtime.SourceProcess {
		t.Errorf("got %+v, %v", d, err)
	}
	wantLeft(t, limiter, limit, 2)
	limiter = inMemory(runtime.WithProcessCap(permitRule(1)))
	if _, err := limiter.Take(t.Context(), limit); !errors.Is(err, runtime.ErrInvalidLimit) {
		t.Errorf("a cap of permits: %v", err)
	}
}
