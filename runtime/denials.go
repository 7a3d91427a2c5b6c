package runtime

import (
	"hash/maphash"
	"time"
)

// DefaultDenialMemory is how long a [RedisStore] believes a denial by default.
const DefaultDenialMemory = time.Second

// denials remembers which keys had no room and until when. Until then a call
// that costs as much cannot be admitted, unless somebody gives back what was
// charged, so Redis need not be asked. Times are counted from before Redis was
// asked, and so are never later than Redis's own.
type denials struct {
	trust time.Duration
	table denialTable
}

// A denial says that charges by a rule of at least this cost, with at most this
// max, do not fit before a time. It never changes.
type denial struct {
	hash      uint64
	key       string
	rule      *Rule
	cost, max int64
	remaining int64
	fits      time.Duration // when the charge fits
	whole     time.Duration // when the limit is whole again
	until     time.Duration // how long to believe it: never longer than fits
}

func newDenials(trust time.Duration) *denials {
	return &denials{trust: trust, table: denialTable{seed: maphash.MakeSeed()}}
}

// spare has ask decide the calls that are not known to be denied.
func (d *denials) spare(calls []Call, ask func([]Call) error) error {
	now := instantOf(calls)
	if len(calls) == 1 {
		if d.recall(&calls[0], now) {
			return nil
		}
		err := ask(calls)
		if err == nil && calls[0].Err == nil {
			d.remember(&calls[0], now)
		}
		return err
	}
	asked, places := make([]Call, 0, len(calls)), make([]int, 0, len(calls))
	for i := range calls {
		if !d.recall(&calls[i], now) {
			asked, places = append(asked, calls[i]), append(places, i)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	err := ask(asked)
	for k, i := range places {
		if calls[i].Err = asked[k].Err; err != nil {
			calls[i].Err = err
		}
		if calls[i].Err == nil {
			d.remember(&calls[i], now)
		}
	}
	if len(asked) < len(calls) {
		return nil // the others are decided
	}
	return err
}

// recall reports whether a call is known to be denied, and then fills in its
// results. A limit that nothing is known of counts as having room.
func (d *denials) recall(call *Call, now time.Duration) bool {
	known := false
	for i := range call.Charges {
		c := &call.Charges[i]
		if d.denies(c.Key, c, now) {
			known = true
		} else {
			c.Result = Result{Allowed: true, Remaining: c.Max}
		}
	}
	if known {
		call.Err = nil
	}
	return known
}

// denies reports whether a charge to a key is known to be denied, and then fills
// in its result.
func (d *denials) denies(key []byte, c *Charge, now time.Duration) bool {
	if c.Rule.Mode != Enforce {
		return false
	}
	n := d.table.find(key)
	if n == nil || n.rule != c.Rule || n.cost > c.Cost || c.Max > n.max || now >= n.until {
		return false
	}
	c.Result = Result{
		Remaining:  min(n.remaining, c.Max),
		RetryAfter: n.fits - now,
		ResetAfter: n.whole - now,
		Recalled:   true,
	}
	return true
}

// remember takes note of what a call was denied that was asked about at a time.
// The time a queue takes depends on who waits, so it is not remembered.
func (d *denials) remember(call *Call, asked time.Duration) {
	for i := range call.Charges {
		c := &call.Charges[i]
		if c.Allowed || c.Rule.Mode != Enforce || c.Rule.queues() {
			continue
		}
		d.table.add(&denial{
			key: string(c.Key), rule: c.Rule, cost: c.Cost, max: c.Max, remaining: c.Remaining,
			fits: asked + c.RetryAfter, whole: asked + c.ResetAfter, until: asked + min(c.RetryAfter, d.trust),
		}, asked)
	}
}

// forget drops what is known of the charges' keys, and what is on its way from
// Redis.
func (d *denials) forget(charges []Charge) {
	for i := range charges {
		d.table.forget(charges[i].Key, instant())
	}
}
