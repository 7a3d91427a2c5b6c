package runtime

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
)

const (
	// DefaultMemoryShare is the share of its memory from which on Redis is
	// short of it, see [WithMemoryWatch].
	DefaultMemoryShare = 0.8
	// DefaultMemoryInterval is the time between two readings.
	DefaultMemoryInterval = time.Minute

	// memoryWait is how long a reading may take.
	memoryWait = time.Second
)

// WithMemoryWatch makes the store read Redis's memory use every interval: the
// share of its maxmemory, or of its machine's memory if that is not set; on a
// cluster the share of the fullest master. Each reading goes to the observers. The
// log has a warning when more than share, 0.8 for instance, is in use, and a line
// when that is over. The watch begins with the first limiter on the store and ends
// with [RedisStore.Close]. A share of 0 stands for
// [DefaultMemoryShare], an interval of 0 for [DefaultMemoryInterval].
//
// A Redis that is at its maxmemory refuses calls, [ClassOOM], or drops keys and
// with them counts, as its maxmemory-policy says.
func WithMemoryWatch(share float64, interval time.Duration) RedisOption {
	if share <= 0 {
		share = DefaultMemoryShare
	}
	if interval <= 0 {
		interval = DefaultMemoryInterval
	}
	return func(s *RedisStore) {
		ctx, end := context.WithCancel(context.Background())
		s.watch = &memoryWatch{store: s, share: share, interval: interval, ctx: ctx, end: end}
	}
}

// A memoryWatch reads Redis's memory use until its context ends.
type memoryWatch struct {
	store    *RedisStore
	share    float64
	interval time.Duration
	ctx      context.Context
	end      context.CancelFunc
	once     sync.Once
	running  sync.WaitGroup

	high, blind bool // as last logged: short of memory, and without a reading
}

// begin starts the watch, if it has not been and is not closed.
func (w *memoryWatch) begin() {
	w.once.Do(func() { w.running.Go(w.run) })
}

// close ends the watch and returns when it has ended.
func (w *memoryWatch) close() {
	w.end()
	w.once.Do(func() {})
	w.running.Wait()
}

func (w *memoryWatch) run() {
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		w.read()
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			return
		}
	}
}

// read takes a reading and reports it. Calls report a Redis that does not
// respond.
func (w *memoryWatch) read() {
	e := w.store.listeners.Load()
	use, err := w.store.memory(w.ctx)
	switch {
	case w.ctx.Err() != nil:
		return
	case err != nil:
		if class := ClassOf(err); !w.blind && (class == ClassAuth || class == ClassOther) {
			e.warn("redis does not say how much memory it uses", slog.Any("error", private.Hide(err)))
			w.blind = true
		}
		return
	}
	w.blind = false
	high := use.share() > w.share
	if high != w.high {
		level, msg := slog.LevelInfo, "redis has memory again"
		if high {
			level, msg = slog.LevelWarn, "redis is short of memory"
		}
		e.log.Write(level, msg, 0, slog.Int64("used", use.used), slog.Int64("max", use.limit()))
		w.high = high
	}
	e.memory(MemoryEvent{Used: use.used, Max: use.limit(), High: high})
}

// A memoryUse is what a server says of its memory, in bytes.
type memoryUse struct {
	used    int64
	max     int64 // 0: not set
	machine int64
}

func (u memoryUse) limit() int64 {
	if u.max > 0 {
		return u.max
	}
	return u.machine
}

func (u memoryUse) share() float64 {
	if u.limit() == 0 {
		return 0
	}
	return float64(u.used) / float64(u.limit())
}

// memory returns the memory of the server that has the largest share in use.
func (s *RedisStore) memory(ctx context.Context) (fullest memoryUse, err error) {
	ctx, cancel := context.WithTimeout(ctx, memoryWait)
	defer cancel()
	var mu sync.Mutex
	err = s.masters(ctx, func(ctx context.Context, c redis.Cmdable) error {
		if client, ok := c.(*redis.Client); ok {
			c = client.WithTimeout(memoryWait)
		}
		info, err := c.Info(ctx, "memory").Result()
		if err != nil {
			return err
		}
		use := readMemory(info)
		mu.Lock()
		defer mu.Unlock()
		if fullest == (memoryUse{}) || use.share() > fullest.share() {
			fullest = use
		}
		return nil
	})
	return fullest, err
}

// readMemory reads what INFO memory replies.
func readMemory(info string) (use memoryUse) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "used_memory":
			use.used = n
		case "maxmemory":
			use.max = n
		case "total_system_memory":
			use.machine = n
		}
	}
	return use
}
