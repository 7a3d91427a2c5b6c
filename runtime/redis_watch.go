package runtime

import (
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/server"
)

const (
	// DefaultMemoryShare is the share of its memory from which on Redis is
	// short of it, see [WithMemoryWatch].
	DefaultMemoryShare = 0.8
	// DefaultMemoryInterval is the time between two readings.
	DefaultMemoryInterval = time.Minute
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
		report := memoryReport{store: s, share: share}
		s.watch = server.NewMemoryWatch(s.client, interval, report.hear)
	}
}

// A memoryReport tells the limiters on a store of its Redis's memory.
type memoryReport struct {
	store       *RedisStore
	share       float64
	high, blind bool // as last logged: short of memory, and without a reading
}

// hear reports a reading. Calls report a Redis that does not respond.
func (r *memoryReport) hear(use server.Memory, err error) {
	e := r.store.listeners.Load()
	if err != nil {
		if class := ClassOf(err); !r.blind && (class == ClassAuth || class == ClassOther) {
			e.warn("redis does not say how much memory it uses", slog.Any("error", private.Hide(err)))
			r.blind = true
		}
		return
	}
	r.blind = false
	high := use.Share() > r.share
	if high != r.high {
		level, msg := slog.LevelInfo, "redis has memory again"
		if high {
			level, msg = slog.LevelWarn, "redis is short of memory"
		}
		e.log.Write(level, msg, 0, slog.Int64("used", use.Used), slog.Int64("max", use.Limit()))
		r.high = high
	}
	e.memory(MemoryEvent{Used: use.Used, Max: use.Limit(), High: high})
}

// checkSharding has new stores check for sharding.
var checkSharding = true

// shardingAgain is the time after which a check for sharding that was not conclusive is
// made again.
const shardingAgain = time.Second

// errSharded is the error of calls to a store that shards.
var errSharded = private.New("keys are sharded by a proxy")

// newShardingCheck returns the check of a store, which begins when a batch is
// shared; or nil, if the client itself knows several servers.
func newShardingCheck(s *RedisStore) *server.Sharding {
	if !server.Shards(s.client) {
		return nil
	}
	write := func(level slog.Level, msg string, attrs ...slog.Attr) {
		if e := s.listeners.Load(); e != nil {
			e.log.Write(level, msg, 0, attrs...)
		}
	}
	check := &server.Sharding{
		Client:  s.client,
		Library: &s.cfg.Library,
		Again:   shardingAgain,
		Sharded: func() {
			write(slog.LevelError, "keys are sharded by a proxy: calls of a batch are counted on the wrong server, limits do not hold; "+
				"connect to the servers directly, or with a redis.Ring or redis.ClusterClient")
		},
		Unknown: func(err error) {
			write(slog.LevelDebug, "it is not known whether a proxy shards keys", slog.Any("error", err))
		},
		Panicked: func(value any) { s.cfg.Panicked(value) },
	}
	s.cfg.Shared = check.Begin
	return check
}

// longestRead is the read timeout above which connections to a Redis that does
// not answer are held for too long: go-redis's default.
const longestRead = 5 * time.Second

// advise warns of options of the client with which the store cannot keep its
// promises: if no read ever ends, a few batches to a Redis that went away without
// closing its connections keep all others from finding out that it is back.
func advise(client redis.UniversalClient, e *events) {
	contexts, read, known := server.Options(client)
	if !known || contexts || read > 0 && read <= longestRead {
		return
	}
	e.warn("limits may stay off long after Redis was away: the client waits too long for an answer; "+
		"set its ContextTimeoutEnabled to true, or ReadTimeout to 5s or less, or use runtime.TuneRedis",
		slog.Duration("read_timeout", max(read, 0)))
}
