package script_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	redisengine "github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/rule"
)

// century is a time that no test reaches by itself, so that Redis expires nothing of a test
// that sets the clock.
var century = time.Date(2100, time.January, 1, 0, 0, 0, 123456000, time.UTC)

var onClockTexts sync.Map

// timed returns a store whose scripts read their time from a key.
func timed(client *redis.Client, changes ...func(*redisengine.Config)) runtime.Store {
	onClock := func(text string) string {
		timed, ok := onClockTexts.Load(text)
		if !ok {
			timed, _ = onClockTexts.LoadOrStore(text, redisclock.Script(mutated(text)))
		}
		return timed.(string)
	}
	return newStore(client, append([]func(*redisengine.Config){func(cfg *redisengine.Config) { cfg.Library.Change = onClock }}, changes...)...)
}

// onTime returns a subject on a timed store, on which it is the next century.
func onTime(t *testing.T, client *redis.Client, store runtime.Store) documents.Subject {
	now := century.UnixMicro()
	set := func() {
		ok(t, redisclock.SetAll(t.Context(), client, now, documents.Prefix(t)+"*"))
	}
	set()
	return documents.Subject{
		Store: store, Exact: true,
		Now: func() int64 { return now },
		Advance: func(d time.Duration) {
			now += d.Microseconds()
			set()
		},
	}
}

// wrongBy returns a limiter of a replica whose clock is wrong.
func wrongBy(t *testing.T, server *redistest.Server, by time.Duration) *runtime.Limiter {
	return newLimiter(server.Client(t), func(cfg *redisengine.Config) {
		cfg.Wall = func() int64 { return time.Now().Add(by).UnixMicro() }
	})
}

// TestWrongClocks has replicas whose clocks are wrong charge a limit together, of each
// period. They admit what one does, and agree on when the period ends.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const day = 24 * time.Hour
	var limiters []*runtime.Limiter
	for _, by := range []time.Duration{0, time.Second, -time.Minute, time.Hour, -12 * time.Hour, day, -day, 40 * day, -30 * 365 * day} {
		limiters = append(limiters, wrongBy(t, server, by))
	}
	for _, period := range []rule.Period{rule.Day, rule.Week, rule.Month, rule.Year} {
		limit := (&runtime.Rule{Name: "wrong clocks of a " + period.String(), Algorithm: runtime.FixedWindow, Period: period, Zone: "Pacific/Kiritimati", Max: 100}).Limit(nil)
		var admitted atomic.Int64
		ends := make([]map[time.Time]bool, len(limiters))
		limittest.Concurrently(len(limiters), func(i int) {
			ends[i] = map[time.Time]bool{}
			for range 30 {
				d, err := limiters[i].Take(context.Background(), limit)
				if err == nil {
					admitted.Add(1)
				} else if !errors.Is(err, runtime.ErrLimited) {
					t.Error(err)
				}
				ends[i][time.Now().Add(d.ResetAfter).Round(time.Minute)] = true
			}
		})
		equal(t, fmt.Sprint(period, ": admitted"), admitted.Load(), 100)
		for _, end := range ends {
			same(t, fmt.Sprint(period, ": ends"), ends[0], end)
		}
	}
}

// TestWrongClockFirst has a replica with a wrong clock begin a period, which ends when it is
// to end by the clock of Redis all the same.
func TestWrongClockFirst(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	r := &runtime.Rule{Name: "first", Algorithm: runtime.FixedWindow, Period: rule.Day, Max: 5}
	for _, by := range []time.Duration{72 * time.Hour, -72 * time.Hour} {
		d := taken(t, wrongBy(t, server, by), r.Limit(key(by.String())))
		if d.ResetAfter <= 0 || d.ResetAfter > 24*time.Hour {
			t.Errorf("%v off: %+v", by, d)
		}
	}
}
