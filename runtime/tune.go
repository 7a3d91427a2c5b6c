package runtime

import (
	"time"

	"github.com/redis/go-redis/v9"
)

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
