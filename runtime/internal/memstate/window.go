package memstate

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A window is a state that keeps one count, from the first event on until the
// window is over. See fixed_window.lua.
//
//   - time is when the window began;
//   - count is how much of it is used.
type window state

func (w *window) look(clock int64, c *terms.Charge, v *view) {
	v.time, v.bound, v.count, v.reset = clock, clock, 0, 0
	if w.dropTime > 0 && clock < w.time+c.Window {
		v.time, v.bound, v.count = max(clock, w.time), w.time, w.count
		v.reset = w.time + c.Window - clock
	}
	v.room, v.retry = c.Max-v.count, 0
	if c.Cost > v.room {
		v.retry = v.reset
	}
}

func (w *window) charge(clock int64, c *terms.Charge, v *view) {
	w.time, w.count = v.bound, min(v.count+c.Cost, spec.MaxAmount)
	w.dropTime = w.time + c.Window
	v.reset, v.delay = w.dropTime-clock, 0
}

func (w *window) refund(clock int64, c *terms.Charge) {
	stop := w.time + c.Window
	if w.dropTime > 0 && c.At >= w.time && c.At < stop && clock < stop {
		w.count = max(0, w.count-c.Cost)
		w.dropTime = stop
	}
}
