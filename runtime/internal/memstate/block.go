package memstate

import (
	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// Hold blocks c.Key for everybody for c.At microseconds, unless a block does for longer.
// At 0 it ends any. It returns false, and has changed nothing, if the key holds the state of
// another kind.
func (m *Map) Hold(clock int64, c *terms.Charge) bool {
	s, hash := m.shard(c.Key)
	defer m.tellLost()
	s.mu.Lock()
	defer s.mu.Unlock()
	var v view
	c.SetClock(clock)
	charge := terms.Charge{Terms: c.Terms, Key: c.Key, Tenancy: terms.Tenancy{Tenant: everybody}}
	e, ok := s.look(clock, hash, &charge, &v)
	if !ok || e == nil && c.At == 0 {
		return ok
	}
	e = s.prepare(clock, hash, c, e, m)
	until := v.time + c.At
	if c.At == 0 {
		e.block(clock, &charge, 0)
	} else if e.blockOf(&charge) < until {
		e.block(clock, &charge, until)
		e.extendExpiry(clock, c.Window, until)
	}
	return true
}

// blockEnd returns when the block of a key ends, or 0 if there is none. A block that
// has ended stays until the next charge. Of a bucket that is divided it is the last one. See block.lua.
func (e *entry) blockEnd() int64 {
	if e == nil || e.extra == nil {
		return 0
	}
	if e.extra.tenants != nil {
		return e.extra.tenants.lastBlock()
	}
	return e.extra.blockEnd
}

// blockOf returns when the block ends that holds for a charge, or 0: that of its tenant, or of all.
func (e *entry) blockOf(c *terms.Charge) int64 {
	if !c.Algorithm.Is(algorithm.Divides) || e == nil || e.extra == nil || e.extra.tenants == nil {
		return e.blockEnd()
	}
	return e.extra.tenants.blockOf(c.Tenant)
}

// block sets when the block of a charge ends: of its tenant, if it has one. At 0 there is none.
func (e *entry) block(clock int64, c *terms.Charge, until int64) {
	if !c.Algorithm.Is(algorithm.Divides) {
		e.setBlockEnd(until)
	} else if until != 0 || e.extra != nil && e.extra.tenants != nil {
		e.makeTenants().block(clock, c.Tenant, until)
	}
}

// setBlockEnd sets when the block ends; at 0 there is none.
func (e *entry) setBlockEnd(until int64) {
	if e.extra != nil || until != 0 {
		e.makeExtra().blockEnd = until
	}
}

// clear forgets everything but the key.
func (e *entry) clear() {
	e.state.clear()
	e.setBlockEnd(0)
	e.forget()
}

// applyBlock refuses a charge that was looked at, if a block is on.
func (e *entry) applyBlock(clock int64, c *terms.Charge, v *view) {
	if until := e.blockOf(c); until > v.time && !c.Shadow {
		v.setBlock(clock, until)
	}
}

// updateRefused updates the entry of a charge that is not made. If the limit has a block and refuses
// this charge first, the block begins. A process that may wait for permits gets a place in line.
func (e *entry) updateRefused(clock int64, c *terms.Charge, v *view) {
	if !c.Allowed && !v.blocked && c.Block > 0 && !c.Shadow {
		until := v.time + c.Block
		e.block(clock, c, until)
		e.extendExpiry(clock, c.Window, until)
		v.setBlock(clock, until)
		v.fillResult(&c.Result)
	}
	e.heal(clock, c.Window, v)
	if c.Algorithm.Is(algorithm.Lends) && c.Param != 0 && !c.Allowed {
		(*permits)(&e.state).wait(clock, c, v)
		c.Delay = terms.Micros(v.delay)
	}
}

// endBlock ends a block that is over when a charge is made. A block that is still on, because the
// limit is in shadow mode now or a call is settled, keeps the key until it ends.
func (e *entry) endBlock(clock, at int64, c *terms.Charge) {
	if until := e.blockOf(c); until > at {
		e.extendExpiry(clock, c.Window, until)
	} else {
		e.block(clock, c, 0)
	}
}

// keepBlock keeps a block through a refund. The key was kept until kept before the refund.
func (e *entry) keepBlock(clock, kept int64, c *terms.Charge) {
	if until := e.blockEnd(); until != 0 {
		if e.dropTime == 0 {
			e.dropTime = kept // in Redis the block alone keeps the key
		}
		e.extendExpiry(clock, c.Window, until)
	}
}

// extendExpiry keeps the key from being dropped before a time.
func (s *state) extendExpiry(clock, window, until int64) {
	if s.expiry()*1000-clock < until-clock {
		s.dropTime = until + expirySlack(window)
	}
}

func (v *view) setBlock(clock, until int64) {
	v.blocked, v.room = true, 0
	v.retry, v.reset = max(v.retry, until-clock), max(v.reset, until-clock)
}
