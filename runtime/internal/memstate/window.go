package memstate

import (
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A window is a state that keeps one count, from the first event on until the
// window is over. See fixed_window.lua.
//
//   - at is when the window began;
//   - count is how much of it is used.
type window state

func (w *window) look(clock int64, c *terms.Charge, v *view) {
	v.at, v.from, v.count, v.reset = clock, clock, 0, 0
	if w.kept > 0 && clock < w.at+c.Window {
		v.at, v.from, v.count = max(clock, w.at), w.at, w.count
		v.reset = w.at + c.Window - clock
	}
	v.room, v.retry = c.Max-v.count, 0
	if c.Cost > v.room {
		v.retry = v.reset
	}
}

func (w *window) charge(clock int64, c *terms.Charge, v *view) {
	w.at, w.count = v.from, min(v.count+c.Cost, spec.MaxAmount)
	w.kept = w.at + c.Window
	v.reset, v.delay = w.kept-clock, 0
}

func (w *window) refund(clock int64, c *terms.Charge) {
	stop := w.at + c.Window
	if w.kept > 0 && c.At >= w.at && c.At < stop && clock < stop {
		w.count = max(0, w.count-c.Cost)
		w.kept = stop
	}
}
