package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// overhead writes how long a request takes that is admitted, beside one of the plain
// transport: the medians of some rounds of each in turn, over HTTP on this machine.
func overhead(t testing.TB, w io.Writer) {
	const rounds, each = 9, 500
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	limited := func(store runtime.Store) *http.Client {
		limiter := runtime.New(store, runtime.WithLogger(slog.New(slog.DiscardHandler)))
		t.Cleanup(func() { _ = limiter.Close() })
		rule := runtime.Rule{Name: "peer", Window: time.Second, Max: 1e6, Fail: runtime.FailClosed}
		transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "/", Limits: []rateclient.PeerLimit{{Rule: rule}}}})
		if err != nil {
			t.Fatalf("a transport: %v", err)
		}
		return &http.Client{Transport: transport}
	}
	redis := redistest.Start(t).Client(t)
	clients := []struct {
		name   string
		client *http.Client
		took   []time.Duration // for a request, in each round
	}{
		{"http.DefaultTransport", &http.Client{}, nil},
		{"rateclient, counts in memory", limited(runtime.NewMemoryStore()), nil},
		{"rateclient, counts in Redis", limited(runtime.NewRedisStore(redis, runtime.WithTimeout(patience))), nil},
	}
	for range rounds {
		for i := range clients {
			begin := time.Now()
			for range each {
				response, err := clients[i].client.Get(server.URL)
				if err != nil {
					t.Fatalf("%s: %v", clients[i].name, err)
				}
				_ = response.Body.Close()
			}
			clients[i].took = append(clients[i].took, time.Since(begin)/each)
		}
	}
	fmt.Fprint(w, "\nAn admitted request over HTTP on this machine, one after another:\n\n| transport | a request |\n|---|---:|\n")
	for _, c := range clients {
		slices.Sort(c.took)
		fmt.Fprintf(w, "| %s | %.0f µs |\n", c.name, float64(c.took[rounds/2])/1e3)
	}
}
