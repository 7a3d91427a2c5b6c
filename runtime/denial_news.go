package runtime

import "time"

// remember takes note of what Redis, asked at a time, has denied a call, and
// that a denial does not hold any more. It reports whether a denial is new.
// The time a queue takes depends on who waits, so it is not remembered.
func (d *denials) remember(call *Call, asked time.Duration) (denied bool) {
	for i := range call.Charges {
		c := &call.Charges[i]
		if c.Rule.Mode != Enforce || c.Rule.queues() {
			continue
		}
		if c.Allowed {
			if !d.table.used.Load() {
				continue
			}
			if n := d.table.find(c.Key); n != nil && n.until <= asked {
				d.table.drop(n)
			}
			continue
		}
		denied = true
		d.table.add(&denial{
			key: string(c.Key), rule: c.Rule, cost: c.Cost, max: c.Max, remaining: c.Remaining,
			fits: asked + c.RetryAfter, whole: asked + c.ResetAfter, until: asked + min(c.RetryAfter, d.trust),
		}, asked)
	}
	return denied
}

// learned says that everybody who comes from now on finds what is new.
func (d *denials) learned() {
	now := int64(instant())
	for {
		last := d.learnt.Load()
		if last >= now || d.learnt.CompareAndSwap(last, now) {
			return
		}
	}
}

// overtake reports whether all calls of a caller who came at an instant are
// denied by what has been learnt since, and then fills in their results. It
// goes only by denials that are trusted: the caller may be the one who is to ask
// whether another one still holds.
func (d *denials) overtake(calls []Call, came time.Duration) bool {
	if d.learnt.Load() < int64(came) {
		return false
	}
	now := instant()
	for i := range calls {
		if !d.known(&calls[i], now, trusted) {
			return false
		}
		calls[i].Err = nil
	}
	return true
}

// forget drops what is known of the charges' keys, and what is on its way from
// Redis.
func (d *denials) forget(charges []Charge) {
	for i := range charges {
		d.table.forget(charges[i].Key, instant())
	}
}
