package raterpc_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
)

func TestPushback(t *testing.T) {
	_, call := raterpc.NewServer(raterpc.WithPushback(time.Minute)).Begin(t.Context(), method, nobody)
	refusal := func(after time.Duration) *raterpc.Refusal {
		return call.Refusal(&runtime.LimitedError{Rule: "x", RetryAfter: after})
	}
	for _, after := range []time.Duration{1, time.Microsecond, time.Millisecond, 1500 * time.Microsecond, 20 * time.Second, time.Minute} {
		seen := map[string]bool{}
		for range 100 {
			text := call.Pushback(t.Context(), refusal(after))
			seen[text] = true
			ms, err := strconv.ParseInt(text, 10, 32)
			wait := time.Duration(ms) * time.Millisecond
			if err != nil || wait < after || wait > after+after/4+time.Millisecond {
				t.Errorf("%q for %v", text, after)
			}
		}
		if after > time.Second && len(seen) < 2 {
			t.Errorf("no jitter for %v", after)
		}
	}
	for _, after := range []time.Duration{runtime.Never, time.Minute + 1, time.Hour, 366 * 24 * time.Hour} {
		if text := call.Pushback(t.Context(), refusal(after)); text != "-1" {
			t.Errorf("%q for %v", text, after)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if text := call.Pushback(soon, refusal(20*time.Second)); text != "-1" {
		t.Errorf("%q although the deadline is sooner", text)
	}
	if text := call.Pushback(t.Context(), call.Refusal(runtime.ErrUnavailable)); text != "" {
		t.Errorf("%q for a limiter that is unavailable", text)
	}
	_, plain := raterpc.NewServer(nil).Begin(t.Context(), method, nobody)
	if text := plain.Pushback(t.Context(), refusal(time.Second)); text != "" {
		t.Errorf("%q without the option", text)
	}
	_, long := raterpc.NewServer(raterpc.WithPushback(runtime.Never)).Begin(t.Context(), method, nobody)
	if text := long.Pushback(t.Context(), refusal(300*24*time.Hour)); text != "-1" {
		t.Errorf("%q is beyond 31 bits", text)
	}
}
