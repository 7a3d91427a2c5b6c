package runtime

import (
	"context"
	"hash/maphash"
	"sync/atomic"
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
	grace time.Duration // how long to go on believing a denial that is being renewed: the store's timeout
	table denialTable
}

// A denial says that charges by a rule of at least this cost, with at most this
// max, do not fit before a time. But for renewing it never changes.
type denial struct {
	hash      uint64
	key       string
	rule      *Rule
	cost, max int64
	remaining int64
	fits      time.Duration // when the charge fits
	whole     time.Duration // when the limit is whole again
	until     time.Duration // how long to believe it: never longer than fits
	renewing  atomic.Bool   // a call asks whether it still holds
}

func newDenials(trust time.Duration) *denials {
	return &denials{trust: trust, table: denialTable{seed: maphash.MakeSeed()}}
}

// A belief says when to believe a denial that Redis was told of longer ago than
// denials are trusted.
type belief uint8

const (
	// renewed: while another call asks whether it still holds.
	renewed belief = iota
	// renewing: the same, and if nobody asks yet the call that came is to.
	renewing
	// unanswered: until there is room again, since Redis does not answer.
	unanswered
)

// spare has ask decide the calls that are not known to be denied. When that
// gets no answer, denials are believed for as long as they were to last: who
// was over a limit before Redis went away is let through no sooner for it.
func (d *denials) spare(ctx context.Context, calls []Call, ask func([]Call) error) error {
	now := instantOf(calls)
	if len(calls) == 1 {
		if d.recall(&calls[0], now) {
			return nil
		}
		err := ask(calls)
		switch {
		case err != nil && ctx.Err() == nil && d.known(&calls[0], instant(), unanswered):
			calls[0].Err = nil
			return nil
		case err == nil && calls[0].Err == nil:
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
	decided := len(calls) - len(asked)
	for k, i := range places {
		switch calls[i].Err = asked[k].Err; {
		case err != nil && ctx.Err() == nil && d.known(&calls[i], instant(), unanswered):
			calls[i].Err = nil
			decided++
		case err != nil:
			calls[i].Err = err
		case calls[i].Err == nil:
			d.remember(&calls[i], now)
		}
	}
	if decided > 0 {
		return nil // the others have errors of their own
	}
	return err
}

// recall reports whether a call is known to be denied, and then fills in its
// results. A limit that nothing is known of counts as having room.
func (d *denials) recall(call *Call, now time.Duration) bool {
	if !d.known(call, now, renewed) && !d.known(call, now, renewing) {
		return false
	}
	call.Err = nil
	return true
}

func (d *denials) known(call *Call, now time.Duration, b belief) bool {
	known := false
	for i := range call.Charges {
		c := &call.Charges[i]
		if d.denies(c.Key, c, now, b) {
			known = true
		} else {
			c.Result = Result{Allowed: true, Remaining: c.Max}
		}
	}
	return known
}

// denies reports whether a charge to a key is known to be denied, and then fills
// in its result. A denial that is no longer trusted holds for a grace while one
// call asks again, so that not everybody does.
func (d *denials) denies(key []byte, c *Charge, now time.Duration, b belief) bool {
	if c.Rule.Mode != Enforce {
		return false
	}
	n := d.table.find(key)
	if n == nil || n.rule != c.Rule || n.cost > c.Cost || c.Max > n.max || now >= n.fits {
		return false
	}
	if now >= n.until && b != unanswered {
		if now >= n.until+d.grace || !n.renewing.Load() && (b != renewing || n.renewing.CompareAndSwap(false, true)) {
			return false
		}
	}
	c.Result = Result{
		Remaining:  min(n.remaining, c.Max),
		RetryAfter: n.fits - now,
		ResetAfter: n.whole - now,
		Recalled:   true,
	}
	return true
}

// remember takes note of what a call was denied that was asked about at a time,
// and that a denial does not hold any more.
// The time a queue takes depends on who waits, so it is not remembered.
func (d *denials) remember(call *Call, asked time.Duration) {
	for i := range call.Charges {
		c := &call.Charges[i]
		if c.Rule.Mode != Enforce || c.Rule.queues() {
			continue
		}
		if c.Allowed {
			if n := d.table.find(c.Key); n != nil && n.until <= asked {
				d.table.drop(n)
			}
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
