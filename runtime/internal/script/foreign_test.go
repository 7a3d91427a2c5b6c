package script_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestForeignValue finds somebody else's values of the right type under its keys, and its
// own that are damaged, alone and in the middle of a run, and wants an error and the values
// as they were.
func TestForeignValue(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redistest.Start(t).Client(t)
	store := newStore(client)
	rules := storetest.WaysOf(time.Hour, 5)
	for name, rule := range storetest.BlockingWaysOf(time.Hour, 5) {
		if rule.Block = time.Second; !stored(rule) || rule.Storage == runtime.StoragePacked {
			rules[name+" with a block"] = rule
		}
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			key := storetest.Prefix(t)
			for _, value := range foreignValues(t, client, key, rule) {
				ok(t, client.Del(ctx, key).Err())
				value()
				before := client.Dump(ctx, key).Val()
				if before == "" {
					t.Fatal("there is no value")
				}
				for _, keys := range [][]string{{key}, {key + "before", key, key + "after"}, {key, key}} {
					var calls []rawstore.Call
					for _, key := range keys {
						calls = append(calls, single(rule, key, 1)...)
					}
					ok(t, rawstore.On(store).Take(ctx, calls))
					for i, k := range keys {
						if foreign := runtime.ClassOf(calls[i].Err) == runtime.ClassWrongType; foreign != (k == key) || !foreign && calls[i].Err != nil {
							t.Errorf("call %d of %d: got %+v, %v", i, len(calls), calls[i].Charges[0].Result, calls[i].Err)
						}
					}
					client.Del(ctx, key+"before", key+"after")
				}
				for _, max := range []int64{5, 500} {
					if max == 500 && client.Type(ctx, key).Val() == "string" && client.StrLen(ctx, key).Val() == 0 {
						continue // a part of nothing is read as of no key
					}
					for _, do := range []storetest.Operation{take, peek} {
						calls := single(rule, key, 1)
						calls[0].Charges[0].Max = max
						if ok(t, do(rawstore.On(store), ctx, calls)); runtime.ClassOf(calls[0].Err) != runtime.ClassWrongType {
							t.Errorf("max %d: got %+v, %v", max, calls[0].Charges[0].Result, calls[0].Err)
						}
					}
				}
				equal(t, client.Type(ctx, key).Val(), client.Dump(ctx, key).Val(), before)
			}
		})
	}
}

// foreignValues returns functions that set a key to values of the type that a rule's keys
// have, and that are none of the rule's.
func foreignValues(t *testing.T, client *redis.Client, key string, rule *runtime.Rule) (set []func()) {
	if stored(rule) && rule.Storage != runtime.StoragePacked {
		add := func(members ...redis.Z) { set = append(set, func() { client.ZAdd(t.Context(), key, members...) }) }
		for _, member := range []string{"", "anna", "10.0.0.1", "1700000000 or so"} {
			add(redis.Z{Score: 12, Member: member})
		}
		add(redis.Z{Score: 7, Member: "anna"}, redis.Z{Score: 8, Member: "ben"}, redis.Z{Score: 9, Member: "cleo"}, redis.Z{Score: 10, Member: "dora"})
		return set
	}
	texts := []string{
		"", "hello", "7", `{"id": 7, "name": "a name that is rather long"}`, strings.Repeat("7 ", 30),
		// As long as a key that holds no more than a block.
		"12345678", "\x01\x00\x00\x00\x00\x00\x00\x00", "\x05\x00\x00\x00\x00\x00\x00\x01",
	}
	if rule.Storage != runtime.StoragePacked && rule.Reserve == 0 { // which TestPackedBroken damages
		taken := must(t, newStore(client), take, single(rule, key, 1))
		whole := client.Get(t.Context(), key).Val()
		texts = append(texts, "\x01", "\x05"+whole[1:], whole[:20], whole[:len(whole)-1], whole[:len(whole)-7], whole+"\x00")
		if !taken.Allowed {
			t.Fatal("the key is not new")
		}
	}
	for _, text := range texts {
		set = append(set, func() { client.Set(t.Context(), key, text, 0) })
	}
	return set
}
