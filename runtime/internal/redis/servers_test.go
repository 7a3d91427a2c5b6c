package redis

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/rediswire"
)

// TestReplacedServers keeps no memory of all servers that a cluster ever had,
// and keeps that of those which it has.
func TestReplacedServers(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	r := New(goredis.New(cluster), &Config{Timeout: 1e6})
	var last rediswire.Server
	for range 2000 {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		defer client.Close()
		last = goredis.New(client)
		r.bySlot[0].Store(r.batcherOf(last))
	}
	if n := len(r.byServer); n > 300 {
		t.Errorf("the store knows %d servers", n)
	}
	if r.byServer[last] == nil {
		t.Error("the store has forgotten the server that it asks")
	}
}
