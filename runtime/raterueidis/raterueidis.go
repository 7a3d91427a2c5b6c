// Package raterueidis keeps limits in Redis by a rueidis client:
//
//	option := raterueidis.Tune(&rueidis.ClientOption{InitAddress: []string{addr}})
//	client, err := rueidis.NewClient(*option)
//	...
//	store, err := raterueidis.NewStore(client, *option)
//	...
//	limiter := runtime.New(store)
//
// The store is that of package runtime: all that is said of it holds, but for the settings
// of go-redis. The client may be of a single server, of one under Sentinel, or of a
// cluster.
//
// Commands of the store have connections to themselves, of the pool that rueidis has for
// commands that block. One that has no answer in time is closed: replies to come are lost
// with it, and never taken for those to other commands. BlockingPoolSize bounds how many
// there are, and a store needs a few.
package raterueidis

import (
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/redis/slots"
	"github.com/rategen/rategen/runtime/rediswire"
	"github.com/rategen/rategen/runtime/wrapper"
)

// NewStore returns a store on a client, which stays the caller's to close. Option is what
// the client was made with. The error names each of its settings with which limits would
// not hold:
//
//   - ConnLifetime: rueidis sends again what a connection carries whose time is over, and
//     a call would be charged twice;
//   - ReplicaOnly, and SendToReplicas if it chooses scripts: replicas do not count.
//
// DisableRetry may be as it is: rueidis retries commands that only read, and the store
// sends none of these for a call.
func NewStore(client rueidis.Client, option rueidis.ClientOption, opts ...runtime.RedisOption) (*runtime.RedisStore, error) {
	if err := check(client, &option); err != nil {
		return nil, err
	}
	return wrapper.NewRedisStore(wireOf(client), opts...), nil
}

// wireOf returns a client as package rediswire has it.
func wireOf(client rueidis.Client) rediswire.Client {
	if client.Mode() == rueidis.ClientModeCluster {
		return slots.New(&server{client: client, routed: true})
	}
	return &server{client: client}
}

// check returns what is wrong with a client's settings.
func check(client rueidis.Client, option *rueidis.ClientOption) (err error) {
	if option.ConnLifetime != 0 {
		err = errors.Join(err, errors.New("raterueidis: ConnLifetime is set, and rueidis sends again what was under way when it is over: calls would be charged twice; leave it 0"))
	}
	if option.ReplicaOnly {
		err = errors.Join(err, errors.New("raterueidis: ReplicaOnly is set, and replicas do not count: give limits a client without it"))
	}
	if toReplica := option.SendToReplicas; toReplica != nil && toReplica(client.B().Arbitrary("EVALSHA", "", "1").Keys("k").Build()) {
		err = errors.Join(err, errors.New("raterueidis: SendToReplicas chooses EVALSHA, and replicas do not count: have it choose commands that only read"))
	}
	return err
}

// tunedTimeout is what Tune sets timeouts to.
const tunedTimeout = 500 * time.Millisecond

// Tune sets options of a client that a limiter is better off with, and returns option.
// Those that are already set stay. The others become:
//
//   - Dialer.Timeout 500 ms: dials that go nowhere end;
//   - ConnWriteTimeout 500 ms: a client of a cluster that asks a dead server for the
//     topology soon asks another. It is also how long other commands of the program may
//     take that do not block.
//
// A limiter keeps to its own time without that.
func Tune(option *rueidis.ClientOption) *rueidis.ClientOption {
	for _, timeout := range []*time.Duration{&option.ConnWriteTimeout, &option.Dialer.Timeout} {
		if *timeout == 0 {
			*timeout = tunedTimeout
		}
	}
	return option
}
