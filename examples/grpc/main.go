// Command grpc is a guide of routes behind rate limits, with clients that are
// refused. In this directory:
//
//	go run .
//
// It counts in memory. With REDIS_ADDR=host:port it counts in the Redis there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	pb "google.golang.org/grpc/examples/route_guide/routeguide"

	"github.com/rategen/rategen/examples/grpc/guide"
	"github.com/rategen/rategen/runtime"
)

func main() {
	var store runtime.Store = runtime.NewMemoryStore()
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: addr}))
		defer client.Close()
		store = runtime.NewRedisStore(client)
	}
	if err := run(context.Background(), store, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "grpc:", err)
		os.Exit(1)
	}
}

// run serves, and tells what clients see.
func run(ctx context.Context, store runtime.Store, out io.Writer) error {
	limiter := runtime.New(store, runtime.WithNamespace("example-grpc"), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	defer func() { _ = limiter.Close() }() // it has started nothing
	server := guide.NewServer(&guide.Map{Features: []*pb.Feature{
		{Name: "the old lighthouse", Location: lighthouse}, {Name: "the tea house", Location: teaHouse},
		{Name: "the ferry", Location: &pb.Point{Latitude: 3}},
	}}, limiter)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	story := &story{ctx: ctx, out: out, addr: listener.Addr().String()}
	err = errors.Join(
		story.withClient(story.refused),
		story.withClient(story.retried, grpc.WithDefaultServiceConfig(retryPolicy)),
		story.withClient(story.streamed),
	)
	server.Stop()
	return errors.Join(err, <-served)
}
