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

// tunedTimeout is what TuneRedis sets the client's own timeouts to. They hold
// for what does not know of a call's time: a dial that goes on in the
// background, and a cluster client that asks for the topology.
const tunedTimeout = 500 * time.Millisecond

// TuneRedis sets the options of a Redis client that a limiter is better off
// with and returns o, for a client that it has to itself or shares with commands
// that are as quick:
//
//	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: addr}))
//
// Options that are already set stay. The others become:
//
//   - ContextTimeoutEnabled true: a connection on which no answer comes is given
//     up after half a second, not after five, and a lone caller asks Redis in its
//     own goroutine;
//   - DialerRetries 1: a dial to a port that refuses ends at once, not after half
//     a second, so that a call can say so within its time;
//   - DialTimeout, ReadTimeout and WriteTimeout 500 ms: dials that go nowhere do
//     not fill the pool, and a cluster client that asks a dead node for the
//     topology soon asks another.
//
// With a [WithTimeout] above those, set them higher yourself.
//
// A limiter keeps to its own time without all that. With it, limits are in
// force again sooner after a fault, and [ClassOf] tells a refused port from a
// slow answer.
func TuneRedis[O redis.Options | redis.ClusterOptions | redis.FailoverOptions | redis.UniversalOptions](o *O) *O {
	switch o := any(o).(type) {
	case *redis.Options:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	case *redis.ClusterOptions:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	case *redis.FailoverOptions:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	case *redis.UniversalOptions:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	}
	return o
}

func tune(contexts *bool, dials *int, timeouts ...*time.Duration) {
	*contexts = true
	if *dials == 0 {
		*dials = 1
	}
	for _, timeout := range timeouts {
		if *timeout == 0 {
			*timeout = tunedTimeout
		}
	}
}
