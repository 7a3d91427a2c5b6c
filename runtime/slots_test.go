package runtime_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rawstore"
)

// testManySlots has a store renew what lies in very many slots of a cluster, as a process does
// with all that its calls hold. A server is sent no more scripts at a time than it answers soon.
func testManySlots(t *testing.T, cluster *redistest.Cluster) {
	var mu sync.Mutex
	underway, most, all := map[*redis.Client]int{}, 0, 0
	client := cluster.Client(t, func(o *redis.ClusterOptions) {
		runtime.TuneRedis(o)
		o.ReadTimeout = time.Minute // a busy machine needs seconds for all the slots
		o.NewClient = func(opt *redis.Options) *redis.Client {
			node := redis.NewClient(opt)
			node.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
				scripts := 0
				for _, cmd := range cmds {
					if cmd.Name() == "evalsha" {
						scripts++
					}
				}
				mu.Lock()
				underway[node] += scripts
				most, all = max(most, underway[node]), all+scripts
				mu.Unlock()
				defer func() {
					mu.Lock()
					underway[node] -= scripts
					mu.Unlock()
				}()
				return send()
			}))
			return node
		}
	})
	store := runtime.NewRedisStore(client, patient)
	rule := &runtime.Rule{Name: "many", Prefix: "many:", Window: perHour(1).Window, Max: 10, Algorithm: runtime.Concurrency}
	const keys = 3000
	var calls []rawstore.Call
	for i := range keys {
		calls = append(calls, storetest.Single(rule, fmt.Sprint("many:", i), 1)...)
	}
	storetest.Must(t, store, storetest.Take, calls)
	most, all = 0, 0
	storetest.Must(t, store, storetest.Renew, calls)
	ok(t, store.Close())
	if all < keys/2 || most > 150 {
		t.Errorf("%d scripts, of which %d at a time for a server", all, most)
	}
	t.Logf("%d scripts, of which %d at a time for a server", all, most)
}
