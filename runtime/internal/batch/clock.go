package batch

import "time"

// stepBack is by how much a server's clock steps back at least to be reported. Less is
// how clocks are kept right, and harms no limit that people set.
const stepBack = 100 * time.Millisecond

// watchClock learns the time at which the server has executed a script. If it is before
// the latest one that was known when the script was sent, the clock has stepped back, or
// another server has taken the place of this one.
func (b *Batcher) watchClock(known, now int64) {
	back := time.Duration(known-now) * time.Microsecond
	switch latest := b.clock.Load(); {
	case now == 0:
	case known == 0 || back < stepBack:
		if now > latest {
			b.clock.CompareAndSwap(latest, now) // or else another batch knows better
		}
	case b.clock.CompareAndSwap(latest, now) && b.cfg.SteppedBack != nil:
		b.cfg.SteppedBack(b.Address(), back)
	}
}
