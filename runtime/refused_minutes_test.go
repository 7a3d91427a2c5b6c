package runtime_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
)

// TestForeignRefusals passes over what another program has written where Redis keeps what limiters have refused.
func TestForeignRefusals(t *testing.T) {
	client := ownRedis(t)
	store := bridge.StoreOf(runtime.NewRedisStore(client, patient))
	const key = "rate_limit:{processes}:refused"
	ok(t, client.ZAdd(t.Context(), key, redis.Z{Score: 9e9, Member: "x\ty"}, redis.Z{Score: 9e9, Member: "5\n\t\t\na\tb\tc\nd\t7\n"}).Err())
	found, err := store.RefusedMinutes(t.Context(), "", time.Unix(5*60, 0))
	if err != nil || len(found) != 1 || found[0].Rule != "d" {
		t.Errorf("%+v, %v", found, err)
	}
	ok(t, client.Set(t.Context(), key, "x", 0).Err())
	if _, err := store.RefusedMinutes(t.Context(), "", time.Time{}); err == nil || !strings.Contains(err.Error(), "read what was refused") {
		t.Error(err)
	}
}
