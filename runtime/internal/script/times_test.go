package script_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// TestTimesInRow has each of a run of calls stand for more callers than there is room for. As
// many as fit are charged, and the others are told what is left then.
func TestTimesInRow(t *testing.T) {
	client := ownRedis(t)
	library := script.Library{Change: mutated}
	for a := range algorithm.Algorithms {
		switch a {
		case algorithm.Queue, algorithm.Reserved, algorithm.ReservedPeriod:
			continue // whose calls stand for one caller each
		}
		calls := callsOf(a, 1, 1)[:3]
		for i := range calls {
			c := &calls[i].Charges[0]
			c.Max = 5
			if a.Is(algorithm.Drains) {
				c.Param = c.Max
			}
			if a.Is(algorithm.Divides) {
				c.More = 0
			}
		}
		for _, want := range []struct{ callers, admitted, left int64 }{{2, 2, 3}, {4, 3, 0}, {1, 0, 0}} {
			found := make([]script.Outcome, len(calls))
			e := new(script.Execution)
			e.Fill(script.Take, calls, slices.Repeat([]int64{want.callers}, len(calls)), found, time.Now().UnixMicro())
			e.WithText = true
			library.Send(t.Context(), goredis.New(client), []*script.Execution{e})
			ok(t, e.Err)
			for i := range found {
				if f := &found[i]; f.Admitted != want.admitted || f.Remaining != want.left || f.RetryAfter > 0 != (f.Admitted < want.callers) {
					t.Errorf("algorithm %d: %d callers of key %d, got %+v, want %d admitted and %d left", a, want.callers, i, *f, want.admitted, want.left)
				}
			}
		}
		client.FlushAll(t.Context())
	}
}

// TestTimesOfTenants has calls stand for several callers of a tenant, and wants what as many calls in
// turn get in memory, however often what they have used is rounded.
func TestTimesOfTenants(t *testing.T) {
	client := ownRedis(t)
	const now = 4102444800_000000
	library := script.Library{Change: func(text string) string {
		return strings.ReplaceAll(mutated(text), "redis.call('TIME')", "{ '4102444800', '0' }")
	}}
	rapid.Check(t, func(t *rapid.T) {
		client.FlushAll(context.Background())
		memory := memstate.New(64)
		burst := rapid.SampledFrom([]int64{20, 1000, 1_000_003}).Draw(t, "burst")
		charge := terms.Charge{Key: []byte("k"), Terms: terms.Terms{Algorithm: algorithm.DividedTokens, Window: 1_000_000, Max: 7,
			Param: burst, More: rapid.Int64Range(1, burst/2).Draw(t, "headroom")}}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			calls := []terms.Call{{Charges: []terms.Charge{charge}}}
			c := &calls[0].Charges[0]
			c.Tenant, c.Weight = []byte(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant")), rapid.SampledFrom([]int64{1, 3, 1_000_000}).Draw(t, "weight")
			c.Cost = rapid.Int64Range(1, min(burst-charge.More, max(12, burst/20))).Draw(t, "cost")
			times := rapid.Int64Range(1, 40).Draw(t, "times")
			one, admitted := *c, int64(0)
			for range times {
				memory.Take(now, &one)
				if one.Allowed {
					admitted++
				}
			}
			found, e := make([]script.Outcome, 1), new(script.Execution)
			e.Fill(script.Take, calls, []int64{times}, found, now)
			e.WithText = true
			library.Send(context.Background(), goredis.New(client), []*script.Execution{e})
			if e.Err != nil || found[0].Admitted != admitted || found[0].Remaining != one.Remaining || admitted < times && found[0].Behind != one.Behind {
				t.Fatalf("got %+v, %v, want %d admitted and %+v", found[0], e.Err, admitted, one.Result)
			}
		}
	})
}
