package storetest

import (
	"time"

	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// hold holds a key for d; 0 releases it.
func (t *trial) hold(name string, d time.Duration) {
	t.Helper()
	c := t.charge(name, 1)
	c.Wait = d
	if err := rawstore.On(t.Store).Hold(t.Context(), []rawstore.Charge{c}); err != nil {
		t.Fatalf("hold: %v", err)
	}
}

// held wants a charge that there would be room for denied for d at most, and by half as
// much at least.
func (t *trial) held(name string, d time.Duration) {
	t.Helper()
	if rest := t.blocked(t.charge(name, 1)); rest > d || rest < d/2 {
		t.Fatalf("%s: retry after %v, want about %v", name, rest, d)
	}
}

// holdDenies wants a hold to deny everybody but those of other keys, whatever was counted
// before, until it is released, and to change nothing that is counted.
func holdDenies(t *trial) {
	t.rule.Hold = true
	t.hold("idle", time.Hour) // nothing is counted
	t.held("idle", time.Hour)
	t.admit(t.charge("k", 4), 6)
	t.hold("k", time.Hour)
	for range 3 {
		t.held("k", time.Hour)
	}
	if r := t.peek(t.charge("k", 1))[0]; r.Allowed || !r.Blocked || r.Remaining != 0 {
		t.Errorf("peek: got %+v, want the hold", r)
	}
	if r := t.take(t.charge("other", 1), t.charge("k", 1)); !r[0].Allowed || r[0].At != 0 || !r[1].Blocked {
		t.Errorf("beside another limit: got %+v, want both uncharged", r)
	}
	t.hold("k", time.Minute) // is over before
	t.held("k", time.Hour)
	t.hold("k", 3*time.Hour)
	t.held("k", 3*time.Hour)
	t.hold("k", 0)
	t.hold("k", 0) // changes nothing
	t.hold("never", 0)
	t.free("k", 6)
	t.free("never", 10)
	t.admit(t.charge("k", 6), 0)
	t.hold("k", time.Hour) // there is no room either
	t.blocked(t.charge("k", 1))
	t.hold("k", 0)
	t.deny(t.charge("k", 1), 0)
	t.held("idle", time.Hour)
}

// holdWhenClockStepsBack wants holds to count from the newest event on.
func holdWhenClockStepsBack(t *trial) {
	t.rule.Hold = true
	t.admit(t.charge("back", 1), 9)
	t.Advance(-time.Millisecond)
	t.hold("back", time.Hour)
	first := t.peek(t.charge("back", 1))[0].RetryAfter
	t.hold("back", time.Hour+time.Microsecond)
	if longer := t.peek(t.charge("back", 1))[0].RetryAfter; longer != first+time.Microsecond {
		t.Errorf("held for %v and then for %v, want a microsecond more", first, longer)
	}
}

// holdEdge wants a hold to end to the microsecond, and what was counted to count then.
func holdEdge(t *trial) {
	t.rule.Hold = true
	for _, d := range []time.Duration{time.Microsecond, time.Millisecond, 2 * time.Second, 30 * time.Hour, rule.MaxWindow} {
		name := d.String()
		t.admit(t.charge(name, 10), 0)
		t.hold(name, d)
		t.Advance(d - time.Microsecond)
		r := t.peek(t.charge(name, 1))[0]
		if !r.Blocked || r.RetryAfter < time.Microsecond || d > t.rule.Window && r.RetryAfter != time.Microsecond {
			t.Errorf("%v: got %+v, a microsecond before the end", d, r)
		}
		t.Advance(time.Microsecond)
		if r := t.peek(t.charge(name, 1))[0]; r.Blocked || r.Allowed != (d >= t.rule.Window) && r.Remaining == 0 != (d < time.Hour) {
			t.Errorf("%v: got %+v at the end", d, r)
		}
	}
}
