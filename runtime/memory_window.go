package runtime

// A memoryWindow is a [FixedWindow] in memory. See fixed_window.lua.
//
//   - at is when the window began;
//   - count is how much of it is used.
type memoryWindow memoryState

func (w *memoryWindow) look(clock int64, c *Charge, v *memoryView) {
	window := c.Rule.Window.Microseconds()
	v.at, v.from, v.count, v.reset = clock, clock, 0, 0
	if w.kept > 0 && clock < w.at+window {
		v.at, v.from, v.count = max(clock, w.at), w.at, w.count
		v.reset = w.at + window - clock
	}
	v.room, v.retry = c.Max-v.count, 0
	if c.Cost > v.room {
		v.retry = v.reset
	}
}

func (w *memoryWindow) charge(clock int64, c *Charge, v *memoryView) (at, reset, delay int64) {
	w.at, w.count = v.from, v.count+c.Cost
	w.kept = w.at + c.Rule.Window.Microseconds()
	return v.at, w.kept - clock, 0
}

func (w *memoryWindow) refund(clock int64, c *Charge) {
	stop := w.at + c.Rule.Window.Microseconds()
	if w.kept > 0 && c.At >= w.at && c.At < stop && clock < stop {
		w.count = max(0, w.count-c.Cost)
		w.kept = stop
	}
}
