package crossing

import (
	"context"
	"errors"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/rawstore"
)

// inMemory is the world of a store in memory, in a bubble of testing/synctest. Its
// faults are those of a store that answers late, never, or with an error.
type inMemory struct {
	bubble
	memory *runtime.MemoryStore
	plain  bool // without faults and leases: the limiter's quickest way
	leases bool
}

func newMemory(p *program) *inMemory {
	w := &inMemory{plain: true}
	w.open(p)
	var options []runtime.MemoryOption
	for _, s := range p.Steps {
		switch s.Do.(type) {
		case jump:
			options = []runtime.MemoryOption{runtime.WithClock(w.clock)}
		case trouble:
			// A store tells the time when it decides, and not when the call came.
			w.plain, options = false, []runtime.MemoryOption{runtime.WithClock(w.clock)}
		}
	}
	w.leases = !memorized(p)
	w.memory = runtime.NewMemoryStore(options...)
	return w
}

func (m *inMemory) still() bool                      { return true }
func (m *inMemory) parts() bool                      { return false }
func (m *inMemory) back(time.Duration) time.Duration { return 0 }

func (m *inMemory) store(int) runtime.Store {
	faulty := documents.Through{Store: rawstore.Wrap(m.memory).Store, Way: m.through}
	if m.leases {
		return rawstore.Shared(faulty, m.memory)
	}
	if m.plain {
		return m.memory
	}
	return rawstore.New(faulty, m.memory)
}

var errFault = errors.New("a fault of the store")

// through does something with the store, as far as faults let it.
func (m *inMemory) through(ctx context.Context, do func() error) error {
	faults, changed := m.troubles()
	for faults[frozen] > 0 {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		faults, changed = m.troubles()
	}
	if faults[down] > 0 {
		return errFault
	}
	if faults[slow] > 0 {
		time.Sleep(3 * time.Millisecond)
		defer time.Sleep(3 * time.Millisecond)
	}
	err := do()
	if faults[lost] > 0 {
		return errFault
	}
	return err
}
