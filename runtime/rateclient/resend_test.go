package rateclient_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// TestConnectionOfRefused wants requests that were refused and are sent again to use one connection,
// in whatever form the refused answers are.
func TestConnectionOfRefused(t *testing.T) {
	t.Parallel()
	zipped := func(text string) string {
		var b strings.Builder
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	for name, c := range map[string]struct {
		text    string
		gzip    bool
		chunked bool
		most    int64 // connections
	}{
		"nothing":            {"", false, false, 1},
		"short":              {"refused", false, false, 1},
		"chunked":            {"refused", false, true, 1},
		"compressed":         {"refused", true, false, 1},
		"compressed chunks":  {"refused", true, true, 1},
		"a page":             {strings.Repeat("x", 40<<10), false, false, 1},
		"a page, chunked":    {strings.Repeat("x", 40<<10), false, true, 1},
		"too long to finish": {strings.Repeat("x", 8<<20), false, true, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := c.text
			if c.gzip {
				text = zipped(text)
			}
			var sent, connections atomic.Int64
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if sent.Add(1)%2 == 0 {
					return
				}
				w.Header().Set("Retry-After", "0.001")
				if c.gzip {
					w.Header().Set("Content-Encoding", "gzip")
				}
				if !c.chunked {
					w.Header().Set("Content-Length", strconv.Itoa(len(text)))
				}
				w.WriteHeader(http.StatusTooManyRequests)
				if c.chunked {
					w.(http.Flusher).Flush()
				}
				_, _ = io.WriteString(w, text)
			}))
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			server.Start()
			defer server.Close()
			limiter := runtime.New(runtime.NewMemoryStore())
			defer limiter.Close()
			transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "127.0.0.1/", Limits: perSecond(1000), Wait: time.Minute, Retries: 1}},
				rateclient.WithNext(server.Client().Transport), rateclient.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if status, err := get(t.Context(), transport, server.URL); err != nil || status != 200 {
					t.Fatal(status, err)
				}
			}
			if n := connections.Load(); sent.Load() != 10 || n > c.most || c.most > 1 && n == 1 {
				t.Errorf("%d requests by %d connections, want %d", sent.Load(), n, c.most)
			}
		})
	}
}
