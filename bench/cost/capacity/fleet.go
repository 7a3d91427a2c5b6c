package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/bench/internal/page"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A fleet is what processes ask of a cluster besides decisions. It is measured with one
// process, and multiplied.
type fleet struct {
	product     string
	callers     []int     // of a process at a time
	connections []float64 // to one master with as many callers
	connect     price     // of making a connection
	idle        float64   // bytes of Redis a connection
	topology    price     // of asking which master has which keys
	fields      []int     // of overrides
	polls       []price   // of reading as many
}

// measureFleet prints what many processes do to a cluster.
func measureFleet(ctx context.Context, file string, t traffic, p plan) error {
	if err := check(t, p); err != nil {
		return err
	}
	f := fleet{callers: []int{1, 8, 64, 512}, fields: []int{10, 100, 1000, 10_000}}
	nodes, err := server.StartCluster(ctx, p.Shards)
	if err != nil {
		return err
	}
	defer func() {
		for _, node := range nodes {
			node.Stop()
		}
	}()
	if f.product, err = nodes[0].Product(ctx); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, []*server.Server) error{f.measureConnections, f.measureConnect, f.measureTopology, f.measurePolls} {
		if err := measure(ctx, nodes); err != nil {
			return err
		}
	}
	if p.Cost, err = costOfLog(ctx); err != nil {
		return err
	}
	s := newSimulation(t, p)
	if err := s.run(ctx); err != nil {
		return err
	}
	var out bytes.Buffer
	f.report(&out, p)
	fmt.Fprintf(&out, "\nTheir decisions, simulated:\n\n")
	s.report(&out)
	return page.Write(file, out.Bytes())
}

// clientOf returns a client of a cluster as the documentation has it.
func clientOf(nodes []*server.Server) *redis.ClusterClient {
	return redis.NewClusterClient(runtime.TuneRedis(&redis.ClusterOptions{Addrs: []string{nodes[0].Addr}}))
}

// measureConnections has one process call, and counts the connections that it keeps to a
// master.
func (f *fleet) measureConnections(ctx context.Context, nodes []*server.Server) error {
	for _, callers := range f.callers {
		before, err := connected(ctx, nodes)
		if err != nil {
			return err
		}
		client := clientOf(nodes)
		limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(time.Second)), runtime.WithLogger(nil))
		rule := &runtime.Rule{Name: "fleet", Prefix: "fleet:", Window: time.Second, Max: 1000}
		var wait sync.WaitGroup
		end := time.Now().Add(2 * time.Second)
		for range callers {
			wait.Go(func() {
				for time.Now().Before(end) {
					_, _ = limiter.Take(ctx, rule.Limit(runtime.NewKey().AddInt(rand.Int64N(10_000))))
				}
			})
		}
		wait.Wait()
		after, err := connected(ctx, nodes)
		if err != nil {
			return err
		}
		f.connections = append(f.connections, after-before)
		if err := limiter.Close(); err != nil {
			return err
		}
		if err := client.Close(); err != nil {
			return err
		}
	}
	return nil
}

// connected returns how many connections a master has on average.
func connected(ctx context.Context, nodes []*server.Server) (float64, error) {
	sum := 0
	for _, node := range nodes {
		client := server.NewClient(node.Socket)
		info, err := client.InfoMap(ctx, "clients").Result()
		_ = client.Close()
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(info["Clients"]["connected_clients"])
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return float64(sum) / float64(len(nodes)), nil
}

// measureConnect measures what it costs a master that a process connects, and what a
// connection takes of its memory.
func (f *fleet) measureConnect(ctx context.Context, nodes []*server.Server) error {
	const connections = 500
	admin := server.NewClient(nodes[0].Socket)
	defer admin.Close()
	memory := func() (int64, error) {
		info, err := admin.InfoMap(ctx, "memory").Result()
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(info["Memory"]["used_memory"], 10, 64)
	}
	start, err := memory()
	if err != nil {
		return err
	}
	f.connect, err = priceOf(ctx, admin, connections, func() error {
		client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: nodes[0].Addr, DialTimeout: server.Patience, ReadTimeout: server.Patience}))
		context.AfterFunc(ctx, func() { _ = client.Close() })
		return client.Ping(ctx).Err()
	})
	if err != nil {
		return err
	}
	end, err := memory()
	f.idle = float64(end-start) / connections
	return err
}

// measureTopology measures what it costs a master to say which master has which keys.
func (f *fleet) measureTopology(ctx context.Context, nodes []*server.Server) (err error) {
	admin := server.NewClient(nodes[0].Socket)
	defer admin.Close()
	// By name, since go-redis asks for slots itself and calls its method deprecated.
	f.topology, err = priceOf(ctx, admin, 2000, func() error { return admin.Do(ctx, "CLUSTER", "SLOTS").Err() })
	return err
}

// measurePolls measures what it costs to read overrides of keys.
func (f *fleet) measurePolls(ctx context.Context, _ []*server.Server) error {
	one, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer one.Stop()
	admin := server.NewClient(one.Socket)
	defer admin.Close()
	for _, fields := range f.fields {
		key := fmt.Sprint("limits:", fields)
		for i := range fields {
			if err := admin.HSet(ctx, key, fmt.Sprintf(`["orders.Service.Create","customer-%d"]`, i), `{"max":1000}`).Err(); err != nil {
				return err
			}
		}
		source := override.Redis(admin, key)
		poll, err := priceOf(ctx, admin, 100, func() error {
			_, err := source.Overrides(ctx)
			return err
		})
		if err != nil {
			return err
		}
		f.polls = append(f.polls, poll)
	}
	return nil
}

// priceOf returns what one time of doing something costs a server.
func priceOf(ctx context.Context, admin *redis.Client, times int, do func() error) (price, error) {
	before, err := usedBy(ctx, admin)
	if err != nil {
		return price{}, err
	}
	for range times {
		if err := do(); err != nil {
			return price{}, err
		}
	}
	after, err := usedBy(ctx, admin)
	n := float64(times)
	return price{float64((after.cpu - before.cpu).Microseconds()) / n, float64(after.in-before.in) / n, float64(after.out-before.out) / n}, err
}
