package ratefield

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// The call that takes the last of a limit tells when there is more of it: not a second sooner, and
// not before that, by every algorithm and however the calls before it were spread.
func TestNothingIsLeftForAsLongAsIsTold(t *testing.T) {
	rules := []runtime.Rule{
		{Name: "log"},
		{Name: "packed", Storage: runtime.StoragePacked},
		{Name: "slices", Resolution: time.Second},
		{Name: "counter", Algorithm: runtime.SlidingCounter},
		{Name: "fixed", Algorithm: runtime.FixedWindow},
		{Name: "tokens", Algorithm: runtime.TokenBucket},
		{Name: "burst", Algorithm: runtime.TokenBucket, Burst: 7},
		{Name: "leaky", Algorithm: runtime.LeakyBucket},
	}
	for i := range rules {
		for _, max := range []int64{1, 3, 60} {
			for _, every := range []time.Duration{0, 3 * time.Second} {
				rule := rules[i]
				rule.Window, rule.Max = time.Minute, max
				t.Run(fmt.Sprint(rule.Name, max, every), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						limiter := runtime.New(runtime.NewMemoryStore())
						defer limiter.Close()
						told := func() (m Member) {
							var record Record
							_, _ = limiter.Take(record.Begin(t.Context()), rule.Limit(nil))
							l := record.Limits(nil)[0]
							if l.Refused {
								t.Fatal("refused although there was room")
							}
							return l.Member(Policy{})
						}
						for calls := 0; calls < 200; calls++ {
							m := told()
							if m.Left > 0 {
								time.Sleep(every)
								continue
							}
							time.Sleep(time.Duration(m.Effective)*time.Second - time.Second - time.Millisecond)
							if d, err := limiter.Peek(t.Context(), rule.Limit(nil)); err != nil || d.Allowed {
								t.Fatalf("%+v says too much: %+v, %v", m, d, err)
							}
							time.Sleep(time.Second + time.Millisecond)
						}
					})
				})
			}
		}
	}
}
