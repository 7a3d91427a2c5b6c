package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server's clock steps by each of some times while requests take long and short, and is slewed
// and asked seldom: a step is found once, and nothing else is taken for one.
func TestStepsAreFound(t *testing.T) {
	type request struct{ pause, there, back, step, found time.Duration }
	for name, requests := range map[string][]request{
		"even":         {{}, {pause: time.Second}, {pause: time.Hour}},
		"late replies": {{back: 20 * time.Second}, {}, {there: 20 * time.Second}, {back: time.Minute}, {}},
		"slewed":       {{}, {pause: time.Hour, step: 3 * time.Second}, {pause: time.Hour, step: -50 * time.Millisecond}},
		"forward":      {{}, {step: time.Second, found: time.Second}, {}, {step: time.Hour, found: time.Hour}, {}},
		"after a late reply": {
			{back: 10 * time.Second}, {there: time.Second, step: 20 * time.Second, found: 20 * time.Second}, {},
		},
		"back":             {{}, {step: -time.Hour, found: -time.Hour}, {}, {step: -90 * time.Millisecond}},
		"back and forward": {{}, {step: -time.Hour, found: -time.Hour}, {step: time.Hour, found: time.Hour}, {}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var r Remote
			shift := time.Duration(0)
			for i, q := range requests {
				time.Sleep(q.pause)
				known, sent := r.Latest(), Now()
				shift += q.step
				time.Sleep(q.there)
				executed := time.Now().Add(shift).UnixMicro()
				time.Sleep(q.back)
				got := r.Learn(known, executed, sent)
				if got.Round(10*time.Second) != q.found.Round(10*time.Second) || (got == 0) != (q.found == 0) {
					t.Errorf("%s, request %d: a step of %v is found, want %v", name, i, got, q.found)
				}
			}
		})
	}
}
