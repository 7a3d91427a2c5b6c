package runtime

import (
	"hash/maphash"
	"sync"
	"time"
)

// DefaultDenialMemory is how long a [RedisStore] believes a denial by default.
const DefaultDenialMemory = time.Second

const (
	denialShards = 64
	// denialsAShard bounds the memory that callers over their limits can take:
	// 65,536 keys in all.
	denialsAShard = 1024
)

// denials remembers which keys had no room and until when. Until then a call
// that costs as much cannot be admitted, unless somebody gives back what was
// charged, so Redis need not be asked. Times are counted from before Redis was
// asked, and so are never later than Redis's own.
type denials struct {
	trust  time.Duration
	seed   maphash.Seed
	shards [denialShards]denialShard
}

type denialShard struct {
	mu      sync.Mutex
	keys    map[string]denial
	cleared time.Duration // when a key was last forgotten on purpose
}

// A denial says that charges by a rule of at least this cost, with at most this
// max, do not fit before a time.
type denial struct {
	rule      *Rule
	cost, max int64
	remaining int64
	fits      time.Duration // when the charge fits
	whole     time.Duration // when the limit is whole again
	trusted   time.Duration // how long to believe it
}

func newDenials(trust time.Duration) *denials {
	return &denials{trust: trust, seed: maphash.MakeSeed()}
}

func (d *denials) shard(key []byte) *denialShard {
	return &d.shards[maphash.Bytes(d.seed, key)%denialShards]
}

// spare has ask decide the calls that are not known to be denied.
func (d *denials) spare(calls []Call, ask func([]Call) error) error {
	now := instantOf(calls)
	if len(calls) == 1 {
		if d.recall(&calls[0], now) {
			return nil
		}
		err := ask(calls)
		if err == nil && calls[0].Err == nil {
			d.remember(&calls[0], now)
		}
		return err
	}
	asked, places := make([]Call, 0, len(calls)), make([]int, 0, len(calls))
	for i := range calls {
		if !d.recall(&calls[i], now) {
			asked, places = append(asked, calls[i]), append(places, i)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	err := ask(asked)
	for k, i := range places {
		if calls[i].Err = asked[k].Err; err != nil {
			calls[i].Err = err
		}
		if calls[i].Err == nil {
			d.remember(&calls[i], now)
		}
	}
	if len(asked) < len(calls) {
		return nil // the others are decided
	}
	return err
}

// recall reports whether a call is known to be denied, and then fills in its
// results. A limit that nothing is known of counts as having room.
func (d *denials) recall(call *Call, now time.Duration) bool {
	known := false
	for i := range call.Charges {
		c := &call.Charges[i]
		c.Result = Result{Allowed: true, Remaining: c.Max}
		if c.Rule.Mode != Enforce {
			continue
		}
		shard := d.shard(c.Key)
		shard.mu.Lock()
		n, ok := shard.keys[string(c.Key)]
		shard.mu.Unlock()
		if ok && n.rule == c.Rule && n.cost <= c.Cost && c.Max <= n.max && now < n.fits && now < n.trusted {
			known = true
			c.Result = Result{
				Remaining:  min(n.remaining, c.Max),
				RetryAfter: n.fits - now,
				ResetAfter: n.whole - now,
				Recalled:   true,
			}
		}
	}
	if known {
		call.Err = nil
	}
	return known
}

// remember takes note of what a call was denied that was asked about at a time.
// The time a queue takes depends on who waits, so it is not remembered.
func (d *denials) remember(call *Call, asked time.Duration) {
	for i := range call.Charges {
		c := &call.Charges[i]
		if c.Allowed || c.Rule.Mode != Enforce || c.Rule.queues() {
			continue
		}
		shard := d.shard(c.Key)
		shard.mu.Lock()
		if asked > shard.cleared {
			shard.add(c.Key, denial{
				rule: c.Rule, cost: c.Cost, max: c.Max, remaining: c.Remaining,
				fits: asked + c.RetryAfter, whole: asked + c.ResetAfter, trusted: asked + d.trust,
			}, asked)
		}
		shard.mu.Unlock()
	}
}

// forget drops what is known of the charges' keys, and what is on its way from
// Redis.
func (d *denials) forget(charges []Charge) {
	now := instant()
	for i := range charges {
		shard := d.shard(charges[i].Key)
		shard.mu.Lock()
		delete(shard.keys, string(charges[i].Key))
		shard.cleared = now
		shard.mu.Unlock()
	}
}

// add sets a key. A full shard first drops a few keys that are no longer
// believed, or any one.
func (s *denialShard) add(key []byte, n denial, now time.Duration) {
	if s.keys == nil {
		s.keys = make(map[string]denial)
	}
	if _, known := s.keys[string(key)]; !known && len(s.keys) >= denialsAShard {
		seen, victim := 0, ""
		for k, old := range s.keys {
			victim = k
			if old.trusted <= now {
				delete(s.keys, k)
			}
			if seen++; seen == 8 {
				break
			}
		}
		if len(s.keys) >= denialsAShard {
			delete(s.keys, victim)
		}
	}
	s.keys[string(key)] = n
}
