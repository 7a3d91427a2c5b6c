package runtime

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// reloadEvery is the least time between two times that the store has a cluster
// client ask who serves which slots.
const reloadEvery = 100 * time.Millisecond

// A topology has a cluster client look for the master of a slot when the one
// it knows does not answer. By itself the client does so only once a minute or
// when a node sends it elsewhere, and a dead node sends nobody anywhere.
type topology struct {
	client *redis.ClusterClient // nil: not a cluster
	next   atomic.Int64         // instant from which it may be asked again
}

// doubt has the topology loaded again if err makes it doubtful. It does not
// wait for that.
func (t *topology) doubt(class ErrorClass) {
	if t.client == nil {
		return
	}
	switch class {
	case ClassTimeout, ClassDial, ClassConnection, ClassClusterDown, ClassMasterDown:
	default:
		return
	}
	now, next := int64(instant()), t.next.Load()
	if now >= next && t.next.CompareAndSwap(next, now+int64(reloadEvery)) {
		t.client.ReloadState(context.Background())
	}
}
