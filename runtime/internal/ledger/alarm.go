package ledger

import (
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
)

// An alarm calls a function at an instant. Its owner locks it.
type alarm struct {
	action  func()
	timer   *time.Timer
	dueTime time.Duration // the instant for which timer is set; 0: it is not
}

// set has the action called at an instant, unless it is to be called before.
func (a *alarm) set(due time.Duration) {
	if a.dueTime != 0 && a.dueTime <= due {
		return
	}
	a.dueTime = due
	wait := max(0, due-clock.Now())
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, a.action)
	} else {
		a.timer.Reset(wait)
	}
}

// stop has nothing called any more.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}
