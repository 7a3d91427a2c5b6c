package runtime_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// testClusterFrozen shows that a master that does not answer keeps those
// waiting who need it, for as long as they may, and nobody else.
func testClusterFrozen(t *testing.T, cluster *redistest.Cluster) {
	const timeout = time.Second
	ctx := context.Background()
	for name, punctual := range map[string]bool{"default client": false, "punctual client": true} {
		client := cluster.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = punctual })
		store := runtime.NewRedisStore(client, runtime.WithTimeout(timeout))
		rule := &runtime.Rule{Name: "r", Window: time.Hour, Max: 1_000_000, Storage: runtime.Packed}
		owner := cluster.Owners()
		frozen := owner(0)
		on := map[bool][][]byte{} // keys, by whether they are on it
		for i := 0; len(on[true]) < 20 || len(on[false]) < 40; i++ {
			key := fmt.Sprintf("frozen:%v:%d", punctual, i)
			side := owner(cluster.Slot(key)) == frozen
			on[side] = append(on[side], []byte(key))
		}
		take := func(key []byte) error {
			calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: key, Max: rule.Max, Cost: 1}}}}
			if err := rawstore.On(store).Take(ctx, calls); err != nil {
				return err
			}
			return calls[0].Err
		}
		for _, keys := range on {
			for _, key := range keys {
				if err := take(key); err != nil {
					t.Fatal(err)
				}
			}
		}
		frozen.Pause()
		var wait, others sync.WaitGroup
		for i := range 64 {
			wait.Go(func() {
				start := time.Now()
				if err := take(on[true][i%len(on[true])]); err == nil {
					t.Errorf("%s: a frozen master has answered", name)
				}
				if took := time.Since(start); took > timeout+2*time.Second {
					t.Errorf("%s: a call took %v", name, took)
				}
			})
			others.Go(func() {
				for n := range 20 {
					if err := take(on[false][(i+n)%len(on[false])]); err != nil {
						t.Errorf("%s: a call to another master: %v", name, err)
					}
				}
			})
		}
		others.Wait() // with the master still frozen
		wait.Wait()
		frozen.Resume()
		cluster.WaitReady() // a replica may have taken its place
	}
}
