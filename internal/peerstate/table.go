package peerstate

import (
	"context"
	"sync"
	"time"
)

const (
	// again is for how long a process goes by what it has read.
	again = time.Second
	// half is how many keys a table has states of in any case. It has twice as many at most.
	half = 5_000
)

// A Table keeps the states of keys. The zero Table is one of this process alone. It is safe
// for concurrent use.
type Table struct {
	// Share tells all processes what a peer has said, and returns the state then. It returns
	// soon. nil: there are no others.
	Share func(ctx context.Context, key string, l *Limit, said Said) (State, error)
	// Drop has all processes forget a key. nil: there are no others.
	Drop func(ctx context.Context, key string) error

	mu          sync.Mutex
	recent, old map[string]*entry // those used since recent was full last, and before
	pause       time.Time         // until when this process goes by what it knows, since Share has failed
}

// An entry is what this process knows of a key.
type entry struct {
	sharing chan struct{} // has room for the one who calls Share

	mu    sync.Mutex
	state State
	read  time.Time // when Share has returned last
}

// Say adds what an answer says about a key, and returns what is known then. Nothing said asks
// what is known. It calls Share if an answer is news, or if what is known is older than a second.
// Only who knows nothing yet waits for another's call.
func (t *Table) Say(ctx context.Context, key []byte, l *Limit, said Said) State {
	e := t.entry(key)
	state, due, known := t.note(e, l, said)
	if !due {
		return state
	}
	select {
	case e.sharing <- struct{}{}:
	default:
		if known && said == (Said{}) {
			return state
		}
		if said != (Said{}) {
			ctx = context.WithoutCancel(ctx) // what is said is told in any case
		}
		select {
		case e.sharing <- struct{}{}:
		case <-ctx.Done():
			return state
		}
	}
	defer func() { <-e.sharing }()
	if state, due, _ = t.note(e, l, said); !due { // the other call has told it
		return state
	}
	shared, err := t.Share(context.WithoutCancel(ctx), string(key), l, said)
	if err != nil {
		t.mu.Lock()
		t.pause = time.Now().Add(again)
		t.mu.Unlock()
		state, _, _ = t.note(e, l, said)
		return state
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state, e.read = shared, time.Now()
	return shared
}

// Forget forgets what the peer has said about a key.
func (t *Table) Forget(ctx context.Context, key []byte) error {
	t.mu.Lock()
	delete(t.recent, string(key))
	delete(t.old, string(key))
	t.mu.Unlock()
	if t.Drop == nil {
		return nil
	}
	return t.Drop(ctx, string(key))
}

// note adds what an answer says to what this process knows, or reports whether that is due to be
// shared. A process adds nothing itself to what it shares.
func (t *Table) note(e *entry, l *Limit, said Said) (state State, due, known bool) {
	now := time.Now()
	t.mu.Lock()
	shares := t.Share != nil && !now.Before(t.pause)
	t.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if shares {
		due, said = e.state.news(l, said, now) || now.Sub(e.read) >= again, Said{}
	}
	e.state.note(l, said, now)
	return e.state, due, !e.read.IsZero()
}

// entry returns that of a key.
func (t *Table) entry(key []byte) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.recent[string(key)]; e != nil {
		return e
	}
	e := t.old[string(key)]
	if e == nil {
		e = &entry{sharing: make(chan struct{}, 1)}
	}
	if t.recent == nil || len(t.recent) >= half {
		t.recent, t.old = make(map[string]*entry), t.recent
	}
	t.recent[string(key)] = e
	return e
}
