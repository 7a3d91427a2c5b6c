package goredis

import (
	"context"
	"encoding"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/rediswire"
)

// A cluster is the client of a Redis cluster.
type cluster struct{ client *redis.ClusterClient }

func (c cluster) Execute(ctx context.Context, scripts []*rediswire.Script) {
	showKeys(scripts)
	execute(ctx, c.client, scripts)
}

func (c cluster) Do(ctx context.Context, commands []rediswire.Command) {
	do(ctx, c.client, commands)
}

func (cluster) About() rediswire.About                   { return rediswire.About{} }
func (c cluster) Patient(time.Duration) rediswire.Server { return c }

func (c cluster) Advice() (set, now string) {
	return advice(c.client.Options().ContextTimeoutEnabled, c.client.Options().ReadTimeout)
}

func (cluster) Slots() bool { return true }

func (c cluster) Find(ctx context.Context, key string) (rediswire.Server, error) {
	client, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		return nil, marked(err)
	}
	return node{client}, nil
}

func (c cluster) Masters(ctx context.Context) ([]rediswire.Server, error) {
	return collect(ctx, c.client.ForEachMaster)
}

func (c cluster) Reload() { c.client.ReloadState(context.Background()) }

// A ring is the client of servers that know nothing of each other.
type ring struct{ client *redis.Ring }

func (r ring) Execute(ctx context.Context, scripts []*rediswire.Script) {
	showKeys(scripts)
	execute(ctx, r.client, scripts)
}

func (r ring) Do(ctx context.Context, commands []rediswire.Command) { do(ctx, r.client, commands) }
func (ring) About() rediswire.About                                 { return rediswire.About{} }
func (r ring) Patient(time.Duration) rediswire.Server               { return r }

func (r ring) Advice() (set, now string) {
	return advice(r.client.Options().ContextTimeoutEnabled, r.client.Options().ReadTimeout)
}

func (ring) Slots() bool { return false }

func (r ring) Find(_ context.Context, key string) (rediswire.Server, error) {
	client, err := r.client.GetShardClientForKey(key)
	if err != nil {
		return nil, marked(err)
	}
	return node{client}, nil
}

func (r ring) Masters(ctx context.Context) ([]rediswire.Server, error) {
	return collect(ctx, r.client.ForEachShard)
}

func (ring) Reload() {}

// collect returns the servers that each goes over, many at the same time.
func collect(ctx context.Context, each func(context.Context, func(context.Context, *redis.Client) error) error) (servers []rediswire.Server, err error) {
	var mu sync.Mutex
	err = each(ctx, func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, node{client})
		return nil
	})
	return servers, marked(err)
}

// showKeys makes the first keys texts, as go-redis wants them to find a server by.
func showKeys(scripts []*rediswire.Script) {
	for _, s := range scripts {
		if len(s.Args) > rediswire.FirstKey {
			if key, is := s.Args[rediswire.FirstKey].(encoding.BinaryMarshaler); is {
				text, _ := key.MarshalBinary()
				s.Args[rediswire.FirstKey] = string(text)
			}
		}
	}
}
