package rateclient

import (
	"sync"
	"time"
)

// maxKeys is how many keys of a limit have lines and holds of this process. Others are held back
// by Redis alone.
const maxKeys = 10_000

// keys are what this process knows of the keys of a limit.
type keys struct {
	lifetime time.Duration // for so long what is not used any more stays known

	mu    sync.Mutex
	known map[string]*keyState
	sweep int // at so many keys those are dropped that are not used any more
	swept time.Time
}

// A keyState is what this process knows of one key.
type keyState struct {
	mu sync.Mutex

	used     time.Time // at the latest
	refusals int       // without a time, in a row
	held     time.Time // until when Redis, or this process, holds back calls
	until    time.Time // until when this process does, since Redis does not yet, or never will
	lines    []*line
}

// find returns what is known of a key, or nil.
func (k *keys) find(key string, now time.Time) *keyState {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.known[key]
	if s != nil {
		s.use(now)
	}
	return s
}

// get returns the state of a key, for what is to be known of it. If too many are known
// already, that will be forgotten with the call.
func (k *keys) get(key string, now time.Time) *keyState {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.known[key]
	if s == nil {
		if s = new(keyState); k.room(now) {
			k.known[key] = s
		}
	}
	s.use(now)
	return s
}

// room makes room for one more key, and reports whether there is.
func (k *keys) room(now time.Time) bool {
	if k.known == nil {
		k.known, k.sweep = map[string]*keyState{}, 64
	}
	if len(k.known) >= k.sweep && now.Sub(k.swept) >= time.Second {
		for key, s := range k.known {
			if s.idle(now, k.lifetime) {
				delete(k.known, key)
			}
		}
		k.sweep, k.swept = min(max(64, 2*len(k.known)), maxKeys), now
	}
	return len(k.known) < maxKeys
}

func (s *keyState) use(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = now
}

// idle reports whether nothing has to be known any more.
func (s *keyState) idle(now time.Time, lifetime time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.used) > lifetime && len(s.lines) == 0 && !now.Before(s.held)
}
