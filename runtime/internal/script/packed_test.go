package script_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/internal/storetest"
)

// TestPackedBytes wants servers with and without Lua's struct to keep the same bytes of
// every state that is a text.
func TestPackedBytes(t *testing.T) {
	client := ownRedis(t)
	withoutStruct := func(text string) string {
		changed := strings.Replace(text, "local struct = rawget(_G, 'struct')", "local struct", 1)
		if changed == text && strings.Contains(text, "SETRANGE") {
			t.Error("the script has changed: it would use struct")
		}
		return changed
	}
	for name, rule := range storetest.WaysOf(100*time.Millisecond, 1000) {
		if rule.Reserve > 0 || stored(rule) && rule.Storage != runtime.StoragePacked {
			continue
		}
		for _, rule.Block = range []time.Duration{0, time.Millisecond} {
			t.Run(fmt.Sprintf("%s, block=%v", name, rule.Block), func(t *testing.T) {
				equalBytes(t, client, rule, injected(t, client, nil), injected(t, client, withoutStruct))
			})
		}
	}
}

// equalBytes has two stores that share a clock decide the same calls, each on a key of
// its own, and wants the same results and the same bytes.
func equalBytes(t *testing.T, client *redis.Client, rule *runtime.Rule, with, without documents.Subject) {
	for i, cost := range []int64{1, 3, 80, 1, 1, 250, 250, 250, 250, 1, 100, 9, 1} {
		decided := func(s documents.Subject, key string) string {
			r := must(t, s.Store, take, single(rule, key, cost)).Result
			value, err := client.Get(t.Context(), key).Bytes()
			ok(t, err)
			return fmt.Sprintf("%+v, %x", r, value)
		}
		equal(t, fmt.Sprintf("call %d, without struct", i), decided(without, documents.Prefix(t)+"0"), decided(with, documents.Prefix(t)+"1"))
		with.Advance(37 * time.Millisecond)
	}
}
