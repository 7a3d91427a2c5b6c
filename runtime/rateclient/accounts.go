package rateclient

import (
	"sync"
	"time"
)

// maxAccounts is how many keys of a limit have lines and holds of this process. Others are held back
// by the store alone.
const maxAccounts = 10_000

// accounts are those of the keys of a limit.
type accounts struct {
	lifetime time.Duration // for so long what is not used any more stays known

	mu    sync.Mutex
	known map[string]*account
	sweep int // at so many keys those are dropped that are not used any more
	swept time.Time
}

// find returns the account of a key, or nil.
func (all *accounts) find(key string, now time.Time) *account {
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.known[key]
	if a != nil {
		a.use(now)
	}
	return a
}

// get returns the account of a key, for what is to be known of it. If too many are known
// already, that will be forgotten with the call.
func (all *accounts) get(key string, now time.Time) *account {
	all.mu.Lock()
	defer all.mu.Unlock()
	a := all.known[key]
	if a == nil {
		a = new(account)
		if all.hasRoom(now) {
			all.known[key] = a
		}
	}
	a.use(now)
	return a
}

// hasRoom makes room for one more key, and reports whether there is.
func (all *accounts) hasRoom(now time.Time) bool {
	if all.known == nil {
		all.known, all.sweep = map[string]*account{}, 64
	}
	if len(all.known) >= all.sweep && now.Sub(all.swept) >= time.Second {
		for key, a := range all.known {
			if a.idle(now, all.lifetime) {
				delete(all.known, key)
			}
		}
		all.sweep, all.swept = min(max(64, 2*len(all.known)), maxAccounts), now
	}
	return len(all.known) < maxAccounts
}

func (a *account) use(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used = now
}

// idle reports whether nothing has to be known any more.
func (a *account) idle(now time.Time, lifetime time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now.Sub(a.used) > lifetime && len(a.lines) == 0 && !now.Before(a.holdEnd)
}
