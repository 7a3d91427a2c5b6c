package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestForeignValue finds somebody else's values of the right type under its
// keys, alone and in the middle of a run, and wants an error and the values as
// they were.
func TestForeignValue(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range serverRules(time.Hour, 5) {
		t.Run(name, func(t *testing.T) {
			key := storetest.Prefix(t)
			for _, value := range foreignValues(rule) {
				client.Del(ctx, key)
				value(client, key)
				before := client.Dump(ctx, key).Val()
				if before == "" {
					t.Fatal("there is no value")
				}
				for _, keys := range [][]string{{key}, {key + "before", key, key + "after"}, {key, key}} {
					calls := make([]rawstore.Call, len(keys))
					for i, key := range keys {
						calls[i].Charges = []rawstore.Charge{{Rule: rule, Key: []byte(key), Max: 5, Cost: 1}}
					}
					if err := rawstore.On(store).Take(ctx, calls); err != nil {
						t.Fatal(err)
					}
					for i, k := range keys {
						if foreign := calls[i].Err != nil && strings.Contains(calls[i].Err.Error(), "WRONGTYPE"); foreign != (k == key) {
							t.Errorf("call %d of %d: got %+v, %v", i, len(calls), calls[i].Charges[0].Result, calls[i].Err)
						}
					}
					client.Del(ctx, key+"before", key+"after")
				}
				if client.Dump(ctx, key).Val() != before {
					t.Errorf("a %s was changed", client.Type(ctx, key).Val())
				}
			}
		})
	}
}

// foreignValues returns values of the type that a rule's keys have.
func foreignValues(rule *runtime.Rule) []func(*redis.Client, string) {
	ctx := context.Background()
	var values []func(*redis.Client, string)
	add := func(set func(client *redis.Client, key string)) { values = append(values, set) }
	switch {
	case !stored(rule) || rule.Storage == runtime.StoragePacked:
		for _, text := range []string{"", "hello", "7", `{"id": 7, "name": "a name that is rather long"}`, strings.Repeat("7 ", 30)} {
			add(func(c *redis.Client, key string) { c.Set(ctx, key, text, 0) })
		}
	default:
		for _, member := range []string{"", "anna", "10.0.0.1", "1700000000 or so"} {
			add(func(c *redis.Client, key string) { c.ZAdd(ctx, key, redis.Z{Score: 12, Member: member}) })
		}
		add(func(c *redis.Client, key string) {
			c.ZAdd(ctx, key, redis.Z{Score: 7, Member: "anna"}, redis.Z{Score: 8, Member: "ben"}, redis.Z{Score: 9, Member: "cleo"}, redis.Z{Score: 10, Member: "dora"})
		})
	}
	return values
}

// TestKeysInRow has a run of calls on keys that have been charged before, some
// of them more than once: what is read of all at once must be each one's own,
// and must not be told again once it has changed.
func TestKeysInRow(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range serverRules(time.Hour, 50) {
		t.Run(name, func(t *testing.T) {
			prefix := storetest.Prefix(t)
			take := func(cost int64, keys string) (left []int64) {
				calls := make([]rawstore.Call, len(keys))
				for i := range calls {
					calls[i].Charges = []rawstore.Charge{{Rule: rule, Key: []byte(prefix + keys[i:i+1]), Max: 50, Cost: cost}}
				}
				if err := rawstore.On(store).Take(ctx, calls); err != nil {
					t.Fatal(err)
				}
				for i := range calls {
					if calls[i].Err != nil {
						t.Fatal(calls[i].Err)
					}
					left = append(left, calls[i].Charges[0].Remaining)
				}
				return left
			}
			used := map[byte]int64{}
			for _, c := range []struct {
				cost int64
				keys string
			}{{1, "a"}, {2, "b"}, {3, "c"}, {4, "dab"}, {1, "abcadb"}, {1, "ddddd"}, {2, "cabcab"}} {
				for i, left := range take(c.cost, c.keys) {
					used[c.keys[i]] += c.cost
					if want := 50 - used[c.keys[i]]; left != want {
						t.Errorf("%q, call %d: %d left, want %d", c.keys, i, left, want)
					}
				}
			}
		})
	}
}

// TestForeignBlock finds somebody else's texts that are as long as a key which holds
// no more than a block, and wants an error and no change.
func TestForeignBlock(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	store := runtime.NewRedisStore(client, patient, atOnce)
	for name, rule := range blockingRules(time.Hour, 5) {
		if stored(rule) && rule.Storage != runtime.StoragePacked {
			continue
		}
		rule.Block = time.Second
		for _, max := range []int64{5, 500} {
			for _, value := range []string{"12345678", "\x01\x00\x00\x00\x00\x00\x00\x00", "\x05\x00\x00\x00\x00\x00\x00\x01"} {
				client.Set(t.Context(), name, value, 0)
				calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: []byte(name), Max: max, Cost: 1}}}}
				if err := rawstore.On(store).Take(t.Context(), calls); err != nil {
					t.Fatal(err)
				}
				if runtime.ClassOf(calls[0].Err) != runtime.ClassWrongType || client.Get(t.Context(), name).Val() != value {
					t.Errorf("%s, max %d, %x: got %+v, %v", name, max, value, calls[0].Charges[0].Result, calls[0].Err)
				}
			}
		}
	}
}
