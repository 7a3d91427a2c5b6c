package outages

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestPlannedFailover has sentinels make a replica the master while a budget is spent. The
// old master takes charges until the client has heard of the new one, and these are lost. None
// is where the old master was paused before, and shares stay as they were. With -count and -v it measures both.
func TestPlannedFailover(t *testing.T) {
	if !effort.Full() {
		t.Skip("a full run fails over")
	}
	for _, paused := range []bool{true, false} {
		name := map[bool]string{true: "paused", false: "as it is"}[paused]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sentinel := redistest.StartSentinel(t)
			client := redis.NewFailoverClient(runtime.TuneRedis(&redis.FailoverOptions{MasterName: sentinel.MasterName, SentinelAddrs: sentinel.Addrs()}))
			t.Cleanup(func() { _ = client.Close() })
			limiter, patiently := runtime.New(runtime.NewRedisStore(client), quiet, closed), onRedis(client)
			shared := &runtime.Rule{Name: "shared", Algorithm: runtime.TokenBucket, Window: time.Hour, Max: 1000, Headroom: 250}
			share := func(tenant string) error {
				_, err := patiently.Take(t.Context(), shared.Limit(nil).WithShare(runtime.NewKey().AddString(tenant), 1).WithCost(50))
				return err
			}
			for range 15 {
				ok(t, share("loud"))
			}
			lost, during, away := failOver(t, sentinel, limiter, paused)
			t.Logf("%d charges of %v are lost, and for %v no call was decided", lost, during, away)
			if paused && lost > 0 || during > 10*time.Second {
				t.Errorf("%d charges of %v are lost", lost, during)
			}
			// The new master knows who has used most, and what is kept from that one.
			if err := share("loud"); !errors.Is(err, runtime.ErrLimited) {
				t.Errorf("the heaviest share is not refused after the failover: %v", err)
			}
			ok(t, share("new"))
		})
	}
}

// failOver spends a budget, one call after the other, from before a failover until a second
// after it. It returns how many charges were lost, in what time they were made, and for how
// long no call was decided.
func failOver(t *testing.T, sentinel *redistest.Sentinel, limiter *runtime.Limiter, pause bool) (lost int64, during, away time.Duration) {
	t.Helper()
	ctx := context.Background()
	var acked []time.Time
	var remaining []int64
	spend := func(until func() bool) {
		for !until() {
			d, err := limiter.Take(ctx, month.Limit(nil))
			if err != nil {
				time.Sleep(time.Millisecond) // so that others get on
				continue
			}
			acked, remaining = append(acked, time.Now()), append(remaining, d.Remaining)
		}
	}
	spend(func() bool { return len(acked) == 100 })
	old, asked := sentinel.Nodes[0].Client(t), sentinel.Sentinels[0].Client(t)
	var err error
	if pause {
		err = old.Do(ctx, "CLIENT", "PAUSE", "20000", "WRITE").Err()
	}
	if err = errors.Join(err, asked.Do(ctx, "SENTINEL", "FAILOVER", sentinel.MasterName).Err()); err != nil {
		t.Fatal(err)
	}
	begin, demoted := time.Now(), time.Time{}
	spend(func() bool {
		if demoted.IsZero() && time.Since(begin) > 100*time.Millisecond {
			begin = time.Now()
			if role, err := old.Do(ctx, "ROLE").Slice(); err == nil && role[0] == "slave" {
				demoted = time.Now()
			}
		}
		return !demoted.IsZero() && time.Since(demoted) > time.Second && acked[len(acked)-1].After(demoted)
	})
	for i := 1; i < len(remaining); i++ {
		away = max(away, acked[i].Sub(acked[i-1]))
		if back := remaining[i] - remaining[i-1] + 1; back > 0 {
			lost, during = back, acked[i-1].Sub(acked[max(i-int(back), 0)])
		}
	}
	return lost, during, away
}
