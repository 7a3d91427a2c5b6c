package steppedclock_test

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/internal/testkit/steppedclock"
)

// TestStep sets the clock of a Redis, whose keys then expire by it, and whose scripts tell it.
func TestStep(t *testing.T) {
	clock := steppedclock.New(t)
	client, ctx := redistest.Start(t).Client(t), context.Background()
	for _, offset := range []time.Duration{0, 3 * time.Hour, -2 * time.Hour, 0} {
		clock.Set(offset)
		before := time.Now().Add(offset)
		micros, err := client.Eval(ctx, "local t = redis.call('TIME') return t[1] * 1000000 + t[2]", nil).Int64()
		if shown := time.UnixMicro(micros); err != nil || shown.Before(before.Add(-time.Millisecond)) || shown.After(time.Now().Add(offset+time.Millisecond)) {
			t.Errorf("%v off: %v, want %v (%v)", offset, shown, before, err)
		}
	}
	if err := client.Set(ctx, "key", 1, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	clock.Step(59 * time.Minute)
	if left := client.PTTL(ctx, "key").Val(); left > time.Minute || left <= 0 {
		t.Errorf("%v left of an hour after 59 minutes", left)
	}
}
