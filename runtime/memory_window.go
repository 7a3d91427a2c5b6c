package runtime

// A memoryWindow is a [FixedWindow] in memory. See fixed_window.lua.
type memoryWindow struct {
	start  int64
	used   int64
	window int64 // of the newest charge, or for how long the key is kept

	at, from, count int64 // found by look: the charge's time, and the window it falls in
}

func (w *memoryWindow) of(r *Rule) bool { return r.Algorithm == FixedWindow }

func (w *memoryWindow) until() int64 { return w.start + w.window }

func (w *memoryWindow) keep(until int64) { w.window = until - w.start }

func (w *memoryWindow) look(clock int64, c *Charge) (room, retry, reset int64) {
	window := c.Rule.Window.Microseconds()
	if w.window > 0 && clock < w.start+window {
		w.at, w.from, w.count = max(clock, w.start), w.start, w.used
		reset = w.start + window - clock
	} else {
		w.at, w.from, w.count = clock, clock, 0
	}
	room = c.Max - w.count
	if c.Cost > room {
		retry = reset
	}
	return room, retry, reset
}

func (w *memoryWindow) charge(clock int64, c *Charge) (at, reset, delay int64) {
	w.window = c.Rule.Window.Microseconds()
	w.start, w.used = w.from, w.count+c.Cost
	return w.at, w.start + w.window - clock, 0
}

func (w *memoryWindow) refund(clock int64, c *Charge) {
	stop := w.start + c.Rule.Window.Microseconds()
	if w.window > 0 && c.At >= w.start && c.At < stop && clock < stop {
		w.used = max(0, w.used-c.Cost)
		w.window = c.Rule.Window.Microseconds()
	}
}
