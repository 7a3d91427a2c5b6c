package runtime

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// WithMemoryWatch makes the store read Redis's memory use every interval: the share of its
// maxmemory, or of its machine's memory if that is not set; on a cluster the share of the
// fullest master. Each reading goes to the observers. The log has a warning when more than
// share is in use, a line when that is over, and a warning when Redis begins to drop keys, of
// whichever program. The watch begins with the first limiter on the store and ends with
// [RedisStore.Close]. A share of 0 stands for 0.8, an interval of 0 for a minute. It panics if
// the share is not between 0 and 1, or the interval is negative.
func WithMemoryWatch(share float64, interval time.Duration) RedisOption {
	if !(share >= 0 && share <= 1) || interval < 0 {
		panic(fmt.Sprintf("runtime: WithMemoryWatch(%v, %v): the share is a part of the memory, from 0 to 1, and the interval is not negative",
			share, interval))
	}
	share, interval = cmp.Or(share, 0.8), cmp.Or(interval, time.Minute)
	return func(s *RedisStore) {
		var lines report.MemoryLines
		s.watch = server.NewMemoryWatch(s.client, interval, func(use server.Reading, err error) {
			e := s.events()
			if err != nil {
				if class := ClassOf(err); class == observe.ClassAuth || class == observe.ClassOther { // calls report the others
					lines.Unknown(e.Log, err)
				}
				return
			}
			ev := observe.MemoryEvent{Used: use.Used, Max: use.Most(), High: use.Share() > share, Evicted: use.Evicted}
			lines.Read(e.Log, ev.Used, ev.Max, ev.Evicted, ev.High)
			for _, o := range e.Observers {
				report.Notify(e, "observer", o.Memory, ev)
			}
		})
	}
}

// checkDurability has the store, if it is not nil, look whether its servers keep counts, and warn
// if they may drop those of a minute or longer, or forget those of a day or longer in a restart.
func (s *RedisStore) checkDurability(r *Rule) {
	long := r.Period != rule.NoPeriod || r.Window >= 24*time.Hour
	if s == nil || !long && r.Window < time.Minute {
		return
	}
	s.keeping.Begin(long, func(risk server.Risk) {
		if long || risk.Evicts != "" {
			s.events().Log.Find(report.BudgetAtRisk, r.Name, "", slog.String("evicts", cmp.Or(risk.Evicts, "no")),
				slog.Bool("append_only_file", !risk.Unsaved))
		}
	})
}

// TuneRedis sets the options of a Redis client that suit a limiter, and returns o. The client
// is for the limiter alone, or shared with commands that are as quick:
//
//	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: addr}))
//
// Options that are already set stay. The others become:
//
//   - ContextTimeoutEnabled true: a connection on which no answer comes is given up after half
//     a second, not after five, and a lone caller asks Redis in its own goroutine;
//   - DialerRetries 1: a dial to a port that refuses ends at once, not after half a second;
//   - DialTimeout, ReadTimeout and WriteTimeout 500 ms: dials that go nowhere do not fill the
//     pool, and a cluster client that asks a dead node for the topology soon asks another. With
//     a [WithTimeout] above that, set them higher yourself.
//
// A limiter keeps to its own time without all that. With it, limits are in force again sooner
// after a fault, and [ClassOf] tells a refused port from a slow answer.
func TuneRedis[O redis.Options | redis.ClusterOptions | redis.FailoverOptions | redis.UniversalOptions](o *O) *O {
	goredis.Tune(o)
	return o
}
