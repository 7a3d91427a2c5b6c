package runtime

import (
	"context"
	"hash/maphash"
	"runtime"
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
	trust  time.Duration
	learnt atomic.Int64 // instant at which the table had the last denial
	table  denialTable
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
	until     time.Duration // how long to trust it: never longer than fits
	renewing  atomic.Bool   // a call asks whether it still holds
}

func newDenials(trust time.Duration) *denials {
	return &denials{trust: trust, table: denialTable{seed: maphash.MakeSeed()}}
}

// A belief says what becomes of a denial that Redis was told of longer ago than
// denials are trusted.
type belief uint8

const (
	// trusted: it is not believed.
	trusted belief = iota
	// renewed: it is, while another call asks whether it still holds.
	renewed
	// renewing: the same, and if nobody asks yet the call that came is to.
	renewing
	// unanswered: it is until there is room again, since Redis does not answer.
	unanswered
)

// A decider decides calls.
type decider interface {
	decide(ctx context.Context, op string, calls []Call) error
}

// spare has the store decide the calls that are not known to be denied. When
// that gets no answer, denials are believed for as long as they were to last:
// who was over a limit before Redis went away is let through no sooner for it.
func (d *denials) spare(ctx context.Context, calls []Call, store decider) error {
	if len(calls) > 1 {
		return d.spareEach(ctx, calls, store)
	}
	if len(calls) == 0 || d.recall(&calls[0], instantOf(calls)) {
		return nil
	}
	err := store.decide(ctx, "take", calls)
	d.release(&calls[0])
	if err != nil && ctx.Err() == nil && d.known(&calls[0], instant(), unanswered) {
		calls[0].Err = nil
		return nil
	}
	return err
}

// spareEach is spare for several calls.
func (d *denials) spareEach(ctx context.Context, calls []Call, store decider) error {
	now := instantOf(calls)
	asked, places := make([]Call, 0, len(calls)), make([]int, 0, len(calls))
	for i := range calls {
		if !d.recall(&calls[i], now) {
			asked, places = append(asked, calls[i]), append(places, i)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	err := store.decide(ctx, "take", asked)
	decided := len(calls) - len(asked)
	for k, i := range places {
		calls[i].Err = asked[k].Err
		d.release(&calls[i])
		switch {
		case err != nil && ctx.Err() == nil && d.known(&calls[i], instant(), unanswered):
			calls[i].Err = nil
			decided++
		case err != nil:
			calls[i].Err = err
		}
	}
	if decided > 0 {
		return nil // the others have errors of their own
	}
	return err
}

// recall reports whether a call is known to be denied, and then fills in its
// results. A limit that nothing is known of counts as having room. If the call
// is not, and Redis has been asked, it must be released.
func (d *denials) recall(call *Call, now time.Duration) bool {
	if !d.table.used.Load() {
		return false
	}
	if !d.known(call, now, renewed) {
		if !d.known(call, now, renewing) {
			return false
		}
		d.release(call)
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
// in its result. A denial that is no longer trusted holds while one call asks
// again, so that not everybody does.
func (d *denials) denies(key []byte, c *Charge, now time.Duration, b belief) bool {
	c.renews = false
	if c.Rule.Mode != Enforce {
		return false
	}
	n := d.table.find(key)
	if n == nil || n.rule != c.Rule || n.cost > c.Cost || c.Max > n.max || now >= n.fits {
		return false
	}
	if now >= n.until && b != unanswered {
		if b == trusted {
			return false
		}
		if !n.renewing.Load() {
			if b != renewing {
				return false
			}
			if c.renews = n.renewing.CompareAndSwap(false, true); c.renews {
				return false
			}
		}
		runtime.Gosched() // so that a flood of denied calls does not keep the one that asks from its answer
	}
	c.Result = Result{
		Remaining:  min(n.remaining, c.Max),
		RetryAfter: n.fits - now,
		ResetAfter: n.whole - now,
		Recalled:   true,
	}
	return true
}

// release lets another call ask about the denials that this one was to ask
// about. If it got an answer they are replaced or gone.
func (d *denials) release(call *Call) {
	for i := range call.Charges {
		c := &call.Charges[i]
		if !c.renews {
			continue
		}
		c.renews = false
		if n := d.table.find(c.Key); n != nil {
			n.renewing.Store(false)
		}
	}
}
