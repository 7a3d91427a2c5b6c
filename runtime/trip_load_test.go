package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
)

// A tripLoad is many callers that share trips to a few keys, and takes down
// what each is told.
type tripLoad struct {
	store *runtime.RedisStore
	keys  []*loadKey
	once  *runtime.Rule // of a key for one call alone
	tag   string

	calls    atomic.Int64
	admitted atomic.Int64
	lost     atomic.Int64 // calls whose callers got an error in place of an answer
	mu       sync.Mutex
	singles  map[int64]lone // by call
}

// A loadKey is a key that many calls share.
type loadKey struct {
	rule *runtime.Rule
	key  string

	mu       sync.Mutex
	admitted []admission
	unknown  int64 // the cost of calls whose callers do not know what became of them
	denied   int64
}

// An admission is what one caller was told: that it was let in between from and
// to, counted in events.
type admission struct {
	from, to   int64
	start, end time.Time
}

// A lone is a call that has a key of its own, and what became of it.
type lone struct {
	key     string
	outcome outcome
	told    string // in full
}

type outcome string

const (
	toldNothing  outcome = "nothing"
	toldAdmitted outcome = "admitted"
	toldDenied   outcome = "denied"
	// toldRecalled: denied by an earlier denial, without Redis or because it did
	// not answer. In the second case the call may have been charged, as after any
	// other lost answer.
	toldRecalled outcome = "denied by an earlier denial"
)

// newTripLoad returns a load whose keys begin with tag.
func newTripLoad(client redis.UniversalClient, tag string) *tripLoad {
	l := &tripLoad{
		store:   runtime.NewRedisStore(client, runtime.WithTimeout(40*time.Millisecond)),
		once:    &runtime.Rule{Name: "once", Window: time.Hour, Max: 10, Algorithm: runtime.FixedWindow},
		tag:     tag,
		singles: map[int64]lone{},
	}
	for i, rule := range []runtime.Rule{
		{Max: 1_000_000, Storage: runtime.Packed},
		{Max: 1_000_000},
		{Max: 700, Storage: runtime.Packed},
		{Max: 1_000_000, Algorithm: runtime.FixedWindow},
		{Max: 1_000_000, Algorithm: runtime.SlidingCounter, Buckets: runtime.EqualBuckets(60)},
		{Max: 300, Algorithm: runtime.FixedWindow},
		{Max: 1_000_000, Storage: runtime.Packed},
		{Max: 60, Storage: runtime.Packed},
	} {
		rule.Name, rule.Window = fmt.Sprint(i), time.Hour
		name := fmt.Sprintf("%sload:%d", tag, i)
		if i >= 3 { // in other slots
			name = fmt.Sprintf("load:%d:%s", i, strings.Trim(tag, "{}"))
		}
		l.keys = append(l.keys, &loadKey{rule: &rule, key: name})
	}
	return l
}

// run has callers call while one fault comes after the other. Each lasts a
// moment, and the next one comes when callers get answers again.
func (l *tripLoad) run(t *testing.T, faults []fault) {
	t.Helper()
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range 32 {
		wait.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.call()
				}
			}
		})
	}
	for _, fault := range faults {
		fault.begin()
		time.Sleep(80 * time.Millisecond) // several calls by everybody, unless the breaker spares them
		fault.end()
		begin := time.Now()
		l.await(t, "after "+fault.name, &l.admitted, l.admitted.Load()+300)
		t.Logf("%s: back after %v", fault.name, time.Since(begin).Round(time.Millisecond))
	}
	close(stop)
	wait.Wait()
}

// await waits until a counter is at n.
func (l *tripLoad) await(t *testing.T, what string, counter *atomic.Int64, n int64) {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); counter.Load() < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: callers are stuck", what)
		}
	}
}

// call makes a call to one of the keys, most of them alike, or to one of them
// and a key of its own. Some callers give up.
func (l *tripLoad) call() {
	ctx := context.Background()
	switch rand.IntN(4) {
	case 0:
		ending, cancel := context.WithTimeout(ctx, rand.N(3*time.Millisecond))
		defer cancel()
		ctx = ending
	case 1:
		ending, cancel := context.WithCancel(ctx)
		defer time.AfterFunc(rand.N(2*time.Millisecond), cancel).Stop()
		defer cancel()
		ctx = ending
	}
	id := l.calls.Add(1)
	k := l.keys[rand.IntN(len(l.keys))]
	charge := rawstore.Charge{Rule: k.rule, Key: []byte(k.key), Max: k.rule.Max, Cost: 1}
	if rand.IntN(8) == 0 {
		charge.Cost = 2
	}
	charges := []rawstore.Charge{charge}
	alone := rand.IntN(4) == 0
	one := lone{outcome: toldDenied}
	if alone {
		one.key = fmt.Sprintf("once:{%s}:%d", hashPart(k.key), id) // in the slot of k
		charges = append(charges, rawstore.Charge{Rule: l.once, Key: []byte(one.key), Max: l.once.Max, Cost: 1})
	}
	calls := []rawstore.Call{{Charges: charges}}
	start := time.Now()
	err := rawstore.On(l.store).Take(ctx, calls)
	if err == nil {
		err = calls[0].Err
	}
	r := charges[0].Result
	k.note(r, charge.Cost, start, err)
	if alone {
		switch {
		case err != nil && !notCharged(err):
			one.outcome = toldNothing
		case err == nil && r.Allowed:
			one.outcome = toldAdmitted
		case err == nil && r.Recalled:
			one.outcome = toldRecalled
		}
		one.told = fmt.Sprintf("%+v, %v", charges, err)
		l.mu.Lock()
		l.singles[id] = one
		l.mu.Unlock()
	}
	if err != nil {
		if !notCharged(err) && ctx.Err() == nil {
			l.lost.Add(1)
		}
		time.Sleep(time.Millisecond) // there will be more of it
		return
	}
	if r.Allowed {
		l.admitted.Add(1)
	}
}

// notCharged reports whether the error says that the call did not reach Redis.
func notCharged(err error) bool {
	switch runtime.ClassOf(err) {
	case runtime.ClassBreakerOpen, runtime.ClassCrowded, runtime.ClassDial:
		return true
	}
	return false
}

// note takes down what a caller was told.
func (k *loadKey) note(r terms.Result, cost int64, start time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil && notCharged(err):
	case err != nil:
		k.unknown += cost
	case r.Allowed:
		used := k.rule.Max - r.Remaining
		k.admitted = append(k.admitted, admission{used - cost, used, start, time.Now()})
	default:
		k.denied++
	}
}

// hashPart returns what decides the slot of a key.
func hashPart(key string) string {
	if open := slices.Index([]byte(key), '{'); open >= 0 {
		if length := slices.Index([]byte(key[open+1:]), '}'); length > 0 {
			return key[open+1 : open+1+length]
		}
	}
	return key
}
