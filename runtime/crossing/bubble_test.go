package crossing

import (
	"sync"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A bubble is what worlds have in common that are in a bubble of testing/synctest: a clock that
// goes on when all wait, and faults.
type bubble struct {
	began   time.Time
	mu      sync.Mutex
	offset  time.Duration // of the store's clock
	forward time.Duration // the steps of it that go forward
	jumped  time.Duration // when the last one was; below 0: never
	fault   [faultKinds]int
	changed chan struct{} // closed when a fault begins or ends
}

// open begins a world at the earliest time that a program has.
func (w *bubble) open(p *program) {
	time.Sleep(time.Until(p.Begins))
	w.began, w.changed, w.jumped = time.Now(), make(chan struct{}), -1
}

func (w *bubble) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *bubble) now() time.Duration { return w.moment().Truncate(time.Microsecond) }

func (w *bubble) moment() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.began) + w.forward
}

func (w *bubble) jump(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += by
	w.forward += max(0, by)
	w.jumped = time.Since(w.began) + w.forward
}

func (w *bubble) rest()                     { synctest.Wait() }
func (w *bubble) exact() bool               { return true }
func (w *bubble) options() []runtime.Option { return nil }

func (w *bubble) begin(f fault) (end func()) {
	w.set(f, 1)
	return func() { w.set(f, -1) }
}

func (w *bubble) set(f fault, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault[f] += by
	close(w.changed)
	w.changed = make(chan struct{})
}

// troubles returns what holds now, and a channel that is closed when that has changed.
func (w *bubble) troubles() (f [faultKinds]int, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault, w.changed
}
