package script_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
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

// TestSharesOfAnotherWindow has tenants begin anew with another window, by which no score is known.
func TestSharesOfAnotherWindow(t *testing.T) {
	client := ownRedis(t)
	store := rawstore.Wrap(newStore(client))
	r := &runtime.Rule{Window: 10 * time.Hour, Max: 10, Algorithm: runtime.TokenBucket, Headroom: 4}
	admitted := func(tenant string) bool {
		calls := divided(r, "k", tenant, 1)
		ok(t, store.Take(t.Context(), calls))
		return calls[0].Charges[0].Allowed
	}
	for range 3 {
		equal(t, "loud: admitted", admitted("loud"), true)
		equal(t, "quiet: admitted", admitted("quiet"), true)
	}
	equal(t, "loud: admitted beside one that has used as much", admitted("loud"), false)
	other := *r
	other.Window = 20 * time.Hour
	r = &other
	equal(t, "new: admitted, though nobody is known to have used more", admitted("new"), false)
}
