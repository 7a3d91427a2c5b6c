package crossing

import (
	"context"
	"errors"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	engine "github.com/rategen/rategen/runtime/internal/terms"
)

// inMemory is the world of a store in memory, in a bubble of testing/synctest. Its
// faults are those of a store that answers late, never, or with an error.
type inMemory struct {
	memory  *runtime.MemoryStore
	plain   bool // without faults and leases: the limiter's quickest way
	leases  bool
	began   time.Time
	mu      sync.Mutex
	offset  time.Duration // of the store's clock
	forward time.Duration // the steps of it that go forward
	fault   [faultKinds]int
	changed chan struct{} // closed when a fault begins or ends
}

// nowhere is a Redis that nobody asks: only a store on one has leases.
var nowhere *redis.Client

func newMemory(p *program) *inMemory {
	time.Sleep(time.Until(p.Begins))
	w := &inMemory{began: time.Now(), changed: make(chan struct{}), plain: true}
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

func (w *inMemory) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *inMemory) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.began).Truncate(time.Microsecond) + w.forward
}

func (w *inMemory) jump(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += by
	w.forward += max(0, by)
}

func (w *inMemory) rest()                     { synctest.Wait() }
func (w *inMemory) exact() bool               { return true }
func (w *inMemory) options() []runtime.Option { return nil }

func (w *inMemory) begin(f fault) (end func()) {
	w.set(f, 1)
	return func() { w.set(f, -1) }
}

func (w *inMemory) set(f fault, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault[f] += by
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *inMemory) store(int) runtime.Store {
	switch faulty := (faultyStore{w.memory, w}); {
	case w.leases:
		redis := runtime.NewRedisStore(nowhere)
		_ = redis.Close() // it would look after its servers, by goroutines that no bubble may keep
		return leasingStore{faulty, leaser{deeper{redis}}}
	case w.plain:
		return w.memory
	default:
		return faulty
	}
}

var errFault = errors.New("a fault of the store")

// troubles returns what holds now, and a channel that is closed when that has changed.
func (w *inMemory) troubles() (f [faultKinds]int, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault, w.changed
}

// through does something with the store, as far as faults let it.
func (w *inMemory) through(ctx context.Context, do func() error) error {
	faults, changed := w.troubles()
	for faults[frozen] > 0 {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		faults, changed = w.troubles()
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

// A faultyStore is a store in memory that has the faults of its world.
type faultyStore struct {
	*runtime.MemoryStore
	world *inMemory
}

func (s faultyStore) Take(ctx context.Context, calls []engine.Call) error {
	return s.world.through(ctx, func() error { return s.MemoryStore.Take(ctx, calls) })
}

func (s faultyStore) Peek(ctx context.Context, calls []engine.Call) error {
	return s.world.through(ctx, func() error { return s.MemoryStore.Peek(ctx, calls) })
}

func (s faultyStore) Settle(ctx context.Context, charges []engine.Charge) error {
	return s.world.through(ctx, func() error { return s.MemoryStore.Settle(ctx, charges) })
}

func (s faultyStore) Renew(ctx context.Context, calls []engine.Call) error {
	return s.world.through(ctx, func() error { return s.MemoryStore.Renew(ctx, calls) })
}

func (s faultyStore) Reset(ctx context.Context, charges []engine.Charge) error {
	return s.world.through(ctx, func() error { return s.MemoryStore.Reset(ctx, charges) })
}

// A leasingStore is one that limiters lease from, as if other processes shared it. The
// methods that it does not have of a faultyStore are a RedisStore's.
type leasingStore struct {
	faultyStore
	leaser
}

type leaser struct{ deeper }

type deeper struct{ *runtime.RedisStore }
