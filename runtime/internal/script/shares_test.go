package script_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/rawstore"
)

// divided returns a call of a tenant to a rule that is divided.
func divided(r *runtime.Rule, key, tenant string, cost int64) []rawstore.Call {
	calls := single(r, key, cost)
	calls[0].Charges[0].Tenant, calls[0].Charges[0].Weight = []byte(tenant), 1
	return calls
}

// TestManyTenants has a key with a hundred thousand tenants forget the lightest for a new one, and up to eight
// of which next to nothing is left.
func TestManyTenants(t *testing.T) {
	client := ownRedis(t)
	store := rawstore.Wrap(newStore(client))
	r := &runtime.Rule{Window: time.Hour, Max: 1_000_000, Algorithm: runtime.TokenBucket, Headroom: -1}
	score := func(tenant string) float64 { return client.ZScore(t.Context(), "k", tenant).Val() }
	takes := func(tenant string) {
		t.Helper()
		calls := divided(r, "k", tenant, 1)
		ok(t, store.Take(t.Context(), calls))
		equal(t, tenant+": admitted", calls[0].Charges[0].Allowed, true)
		between(t, "the key lives", client.PTTL(t.Context(), "k").Val(), time.Hour, time.Hour+2*time.Second)
	}
	takes("first")
	begun := score("first")
	many := make([]redis.Z, 99_998)
	for i := range many {
		many[i] = redis.Z{Score: begun + 1 + float64(i)/1e6, Member: fmt.Sprint(i)}
	}
	ok(t, client.ZAdd(t.Context(), "k", many...).Err())
	members := func() int64 { return client.ZCard(t.Context(), "k").Val() - 1 } // and the numbers
	takes("the last that fits")
	equal(t, "tenants", members(), 100_000)
	takes("one more")
	equal(t, "tenants after one more", members(), 100_000)
	if score("first") != 0 || score("one more") == 0 || score("0") == 0 {
		t.Error("another than the lightest is forgotten, or the new one")
	}
	// One tenant has used a million times as much as all others.
	ok(t, client.ZAdd(t.Context(), "k", redis.Z{Score: begun + 20, Member: "99"}).Err())
	ok(t, client.ZRem(t.Context(), "k", "1", "2").Err()) // there is room for more
	takes("after a heavy one")
	equal(t, "tenants less eight", members(), 100_000-2-8+1)
}

// TestSharesInBatches has calls of many tenants come together, and wants what they find to be what they find in memory,
// where each is decided by itself. Some cost so much that next to nothing is left of what others have used.
func TestSharesInBatches(t *testing.T) {
	t.Parallel()
	free := databases(t)
	wide := &runtime.Rule{Window: time.Second, Algorithm: runtime.TokenBucket, Burst: 1_000_000_000_000, Headroom: -1}
	tight := &runtime.Rule{Window: time.Second, Algorithm: runtime.TokenBucket, Burst: 40, Headroom: 15}
	shadow, longer := *tight, *tight
	shadow.Mode, longer.Window = runtime.ModeShadow, 2*time.Second
	for name, rules := range map[string][]*runtime.Rule{"wide": {wide}, "tight": {tight}, "tight in versions": {tight, &shadow, &longer}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := free.borrow(t)
			rapid.Check(t, func(t *rapid.T) {
				db.client.FlushDB(context.Background())
				now := time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
				memory := memstate.NewStore(1000)
				memory.Clock = func() int64 { return now }
				stores := []rawstore.Store{{Store: memory}, rawstore.Wrap(db.store)}
				tenants := rapid.SampledFrom([]int{2, 10, 60}).Draw(t, "tenants")
				for range rapid.IntRange(1, 6).Draw(t, "batches") {
					now += rapid.SampledFrom([]int64{0, 1, 20_000, 300_000, 900_000, 3_000_000, -1, -500_000, -5_000_000}).Draw(t, "step")
					calls := make([]rawstore.Call, rapid.IntRange(1, 40).Draw(t, "calls"))
					for i := range calls {
						keys := 1
						if rapid.IntRange(0, 9).Draw(t, "several limits") == 0 {
							keys = 2
						}
						first := rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1}).Draw(t, "key")
						for j := range keys {
							r := rules[rapid.IntRange(0, len(rules)-1).Draw(t, "rule")]
							cost := rapid.SampledFrom([]int64{1, 1, 1, 2, 7}).Draw(t, "cost")
							if r == wide && rapid.IntRange(0, 9).Draw(t, "dear") == 0 {
								cost = rapid.SampledFrom([]int64{30_000, 50_000_000, 90_000_000_000}).Draw(t, "cost")
							}
							calls[i].Charges = append(calls[i].Charges, rawstore.Charge{Rule: r, Max: r.Burst, Key: []byte{'a' + byte(first+j)%2}, Cost: cost})
							last := &calls[i].Charges[j]
							last.Tenant = fmt.Append(nil, rapid.IntRange(1, tenants).Draw(t, "tenant"))
							last.Weight = rapid.SampledFrom([]int64{1, 1, 1, 5}).Draw(t, "weight")
						}
					}
					var answers [2][]rawstore.Call
					err := redisclock.Set(context.Background(), db.client, now, "a", "b")
					for i, s := range stores {
						answers[i] = clone(calls)
						err = cmp.Or(err, s.Take(context.Background(), answers[i]))
					}
					if err != nil {
						t.Fatal(err)
					}
					if !slices.EqualFunc(answers[0], answers[1], sameAnswer) {
						t.Fatalf("at %d: script differs from model (-model +script):\n%s", now, gocmp.Diff(answers[0], answers[1], gocmp.Comparer(func(a, b *runtime.Rule) bool { return a == b })))
					}
				}
			})
		})
	}
}
