package runtime_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

// TestReplacedServers keeps no memory of all servers that a cluster ever had,
// and keeps that of those which it has.
func TestReplacedServers(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	store := runtime.NewRedisStore(cluster)
	clients := make([]*redis.Client, 2000)
	for i := range clients {
		clients[i] = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer clients[i].Close()
	}
	if n := store.Replace(clients...); n > 300 {
		t.Errorf("the store has %d servers in mind", n)
	}
	if !store.Has(clients[len(clients)-1]) {
		t.Error("the store has forgotten the server that it asks")
	}
}
