package memstate

import "github.com/rategen/rategen/runtime/internal/terms"

// until returns when the block of a key ends, or 0 if there is none. A block that
// has ended stays until the next charge. See block.lua.
func (e *entry) until() int64 {
	if e == nil || e.rare == nil {
		return 0
	}
	return e.rare.until
}

// setUntil sets when the block ends; at 0 there is none.
func (e *entry) setUntil(until int64) {
	if e.rare == nil {
		if until == 0 {
			return
		}
		e.rare = new(rare)
	}
	e.rare.until = until
}

// clear forgets everything but the key.
func (e *entry) clear() {
	e.state.clear()
	e.setUntil(0)
}

// see has a block deny a charge that was looked at.
func (e *entry) see(clock int64, c *terms.Charge, v *view) {
	if until := e.until(); until > v.at && !c.Shadow {
		v.blockedUntil(clock, until)
	}
}

// leave does what is due where a charge is not made. If the limit has a block, and
// the charge is the first that it denies, the block begins.
func (e *entry) leave(clock int64, c *terms.Charge, v *view) {
	if !c.Allowed && !v.blocked && c.Block > 0 && !c.Shadow {
		until := v.at + c.Block
		e.setUntil(until)
		e.outlive(clock, c.Window, until)
		v.blockedUntil(clock, until)
		v.tell(&c.Result)
	}
	e.heal(clock, c.Window, v)
}

// lift ends a block that is over when a charge is made. One that goes on, since
// the limit is in shadow mode by now or a call is settled, outlives the charge.
func (e *entry) lift(clock, at int64, c *terms.Charge) {
	if until := e.until(); until > at {
		e.outlive(clock, c.Window, until)
	} else {
		e.setUntil(0)
	}
}

// stay keeps a block through a refund, before which the key was kept for so long.
func (e *entry) stay(clock, kept int64, c *terms.Charge) {
	if until := e.until(); until != 0 {
		if e.kept == 0 {
			e.kept = kept // in Redis the block alone holds it
		}
		e.outlive(clock, c.Window, until)
	}
}

// outlive keeps the key from being dropped before a time.
func (s *state) outlive(clock, window, until int64) {
	if s.dies()*1000-clock < until-clock {
		s.kept = until + slack(window)
	}
}

func (v *view) blockedUntil(clock, until int64) {
	v.blocked, v.room = true, 0
	v.retry, v.reset = max(v.retry, until-clock), max(v.reset, until-clock)
}
