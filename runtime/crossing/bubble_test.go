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
func (b *bubble) open(p *program) {
	time.Sleep(time.Until(p.Begins))
	b.began, b.changed, b.jumped = time.Now(), make(chan struct{}), -1
}

func (b *bubble) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.offset)
}

func (b *bubble) now() time.Duration { return b.moment().Truncate(time.Microsecond) }

func (b *bubble) moment() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.began) + b.forward
}

func (b *bubble) jump(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offset += by
	b.forward += max(0, by)
	b.jumped = time.Since(b.began) + b.forward
}

func (b *bubble) rest()                     { synctest.Wait() }
func (b *bubble) exact() bool               { return true }
func (b *bubble) options() []runtime.Option { return nil }

func (b *bubble) begin(f fault) (end func()) {
	b.set(f, 1)
	return func() { b.set(f, -1) }
}

func (b *bubble) set(f fault, by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault[f] += by
	close(b.changed)
	b.changed = make(chan struct{})
}

// troubles returns what holds now, and a channel that is closed when that has changed.
func (b *bubble) troubles() (f [faultKinds]int, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault, b.changed
}
