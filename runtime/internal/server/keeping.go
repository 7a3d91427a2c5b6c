package server

import (
	"context"
	"sync"
	"time"

	"github.com/rategen/rategen/runtime/internal/background"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/rediswire"
)

// A Risk is what may make servers lose what they count.
type Risk struct {
	// Evicts is the maxmemory-policy of a server that drops keys when it is full, or empty.
	Evicts string
	// Unsaved says that a server has no append-only file: a restart loses what was counted
	// since its last snapshot, or everything if it makes none.
	Unsaved bool
}

const (
	keepingTries = 4           // how many looks are made until one succeeds
	keepingPause = time.Second // the time between two; each further one takes eight times as long
)

// A Keeping finds out once whether the servers of a client keep what they count. Panicked is
// called after a panic in the client.
type Keeping struct {
	Client   rediswire.Client
	Panicked func(value any)

	started   [2]sync.Once // for those that count for shorter and for longer
	work      background.Group
	mu        sync.Mutex
	done      bool
	risk      Risk
	listeners []func(Risk) // who wait for the look
}

// Begin looks in the background, unless it is closed, and calls found if the servers may lose
// counts: once for who counts for a long time, and once for others.
func (k *Keeping) Begin(long bool, found func(Risk)) {
	which := 0
	if long {
		which = 1
	}
	k.started[which].Do(func() {
		k.mu.Lock()
		looked, first := k.done, len(k.listeners) == 0
		k.listeners = append(k.listeners, found)
		k.mu.Unlock()
		if first {
			k.work.Try(keepingTries, keepingPause, func(bool) bool {
				err := k.look()
				return err == nil || script.Replied(err) // and will do so again: a right is missing, say
			})
		} else if looked && k.risk != (Risk{}) {
			found(k.risk)
		}
	})
}

// Close returns when no look is under way any more, and none will begin.
func (k *Keeping) Close() { k.work.Close() }

func (k *Keeping) look() error {
	defer func() {
		if value := recover(); value != nil {
			k.Panicked(value)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), memoryTime)
	defer cancel()
	var mu sync.Mutex
	var risk Risk
	err := Each(ctx, k.Client, func(ctx context.Context, server rediswire.Server) error {
		info, err := readInfo(ctx, server, "memory", "persistence")
		mu.Lock()
		defer mu.Unlock()
		if policy := info["maxmemory_policy"]; policy != "noeviction" && parseNumber(info["maxmemory"]) > 0 {
			risk.Evicts = policy
		}
		risk.Unsaved = risk.Unsaved || info["aof_enabled"] == "0"
		return err
	})
	if risk == (Risk{}) && err != nil {
		return err
	}
	k.mu.Lock()
	k.done, k.risk = true, risk
	waiting := k.listeners
	k.mu.Unlock()
	for _, found := range waiting {
		if risk != (Risk{}) {
			found(risk)
		}
	}
	return nil
}
