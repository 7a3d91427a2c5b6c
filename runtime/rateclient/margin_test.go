package rateclient

import (
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestSpread wants the margin to follow the trips of the last periods, and to be as long as
// it may be before there were enough.
func TestSpread(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	s, at := spread{period: time.Minute}, now
	trips := func(n int, all ...time.Duration) {
		for i := range n {
			s.add(all[i%len(all)], at)
		}
	}
	want := func(want time.Duration) {
		t.Helper()
		if got := s.margin(); got != want {
			t.Errorf("margin %v, want %v", got, want)
		}
	}
	want(maxTime)
	trips(fewTrips-1, 30*ms, 10*ms)
	want(maxTime)
	trips(1, 20*ms)
	want(25 * ms)
	trips(1, 50*ms)
	want(50 * ms)
	at = at.Add(time.Minute)
	trips(3, 100*ms)
	want(112500 * time.Microsecond)
	at = at.Add(time.Minute)
	trips(2, 100*ms, 104*ms)
	want(5 * ms) // what was two periods ago does not count
}

// TestMarginOfRule wants the window to be longer by at least the margin, in few steps, by a
// 64th at most, and by half of that or a second at least.
func TestMarginOfRule(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{time.Millisecond, time.Second, 10 * time.Second, time.Hour, runtime.MaxWindow} {
		rule := runtime.Rule{Name: "r", Window: window, Max: 1}
		l, err := newLimit(&PeerLimit{Rule: rule})
		if err != nil {
			t.Fatal(err)
		}
		most := min(window/marginShare, runtime.MaxWindow-window)
		seen := map[time.Duration]bool{}
		for i := range 1000 {
			margin := window / marginShare * time.Duration(i) / 900
			got := l.rule(margin).Window - window
			margin = max(margin, min(window/128, time.Second))
			if seen[got] = true; got > most || got < min(margin, most)-time.Microsecond || got > margin+most/marginSteps+time.Microsecond {
				t.Fatalf("window %v, margin %v: %v longer", window, margin, got)
			}
		}
		if len(seen) > marginSteps+1 {
			t.Errorf("window %v: %d margins", window, len(seen))
		}
		for margin, want := range map[time.Duration]time.Duration{-1: 0, window / 2: window / 2} {
			l, err := newLimit(&PeerLimit{Rule: rule, Margin: margin})
			if got := l.rule(maxTime).Window - window; err != nil || got != min(want, runtime.MaxWindow-window) {
				t.Errorf("window %v, margin %v: %v longer, %v", window, margin, got, err)
			}
		}
	}
}
