package rateclient_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A pair is a master, and a replica that has executed all that it has until it is cut off.
// Then it takes over.
type pair struct {
	mu              sync.Mutex
	master, replica terms.Store
	cut             bool
}

// cutOff has the replica learn nothing any more.
func (p *pair) cutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
}

// takeOver has the replica be the master, without a replica.
func (p *pair) takeOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.master = p.replica
}

// storeMost is the longest way to the master of a pair and back, each.
const storeMost = time.Millisecond

// A pairStore reaches the master of a pair.
type pairStore struct {
	terms.Store // the first master
	*pair
}

func (s pairStore) Take(ctx context.Context, calls []terms.Call) error {
	time.Sleep(rand.N(storeMost))
	defer time.Sleep(rand.N(storeMost))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cut {
		copies := slices.Clone(calls)
		for i := range copies {
			copies[i].Charges = slices.Clone(calls[i].Charges)
		}
		_ = s.replica.Take(ctx, copies)
	}
	return s.master.Take(ctx, calls)
}

func (s pairStore) Peek(ctx context.Context, calls []terms.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.master.Peek(ctx, calls)
}

func (s pairStore) Hold(ctx context.Context, charges []terms.Charge) error {
	return s.both(charges, func(m terms.Store, charges []terms.Charge) error { return m.Hold(ctx, charges) })
}

func (s pairStore) Reset(ctx context.Context, charges []terms.Charge) error {
	return s.both(charges, func(m terms.Store, charges []terms.Charge) error { return m.Reset(ctx, charges) })
}

func (s pairStore) both(charges []terms.Charge, do func(terms.Store, []terms.Charge) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cut {
		_ = do(s.replica, slices.Clone(charges))
	}
	return do(s.master, charges)
}
