package goredis

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// tunedTimeout is what Tune sets the client's own timeouts to. They hold
// for what does not know of a call's time: a dial that goes on in the
// background, and a cluster client that asks for the topology.
const tunedTimeout = 500 * time.Millisecond

// Tune sets options of a client that are not set, as runtime.TuneRedis says. They are of one
// of go-redis's four types.
func Tune(o any) {
	switch o := o.(type) {
	case *redis.Options:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	case *redis.ClusterOptions:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	case *redis.FailoverOptions:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	case *redis.UniversalOptions:
		tune(&o.ContextTimeoutEnabled, &o.DialerRetries, &o.DialTimeout, &o.ReadTimeout, &o.WriteTimeout)
	}
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
