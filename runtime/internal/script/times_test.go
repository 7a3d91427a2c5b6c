package script_test

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

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
