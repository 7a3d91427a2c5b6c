package ratefiber_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/cors"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratefiber"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Of a large request the header is enough for a refusal, and the handler of one that is admitted
// has the body as a stream. What an answer has already is seen, and added to.
func TestStreams(t *testing.T) {
	var log strings.Builder
	limit := ratehttp.RequestLimit{
		Limiter: runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler))),
		Rule:    &runtime.Rule{Name: "uploads", Window: time.Hour, Max: 1},
		Skip:    func(r *http.Request) bool { return r.ContentLength == 0 },
	}
	app := fiber.New(fiber.Config{StreamRequestBody: true, BodyLimit: 1 << 10})
	app.Use(cors.New(cors.Config{AllowOrigins: []string{wire.Origin}, ExposeHeaders: []string{"X-Own"}}),
		ratefiber.Middleware(ratehttp.WithCORS(), ratehttp.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
	app.Post("/", ratefiber.Limit(limit), func(c fiber.Ctx) error {
		c.Set("RateLimit", `"upstream";r=1`)
		c.Set("Content-Encoding", "own")
		stream := c.Request().BodyStream()
		if stream == nil {
			return c.SendString("no stream")
		}
		first := make([]byte, 5)
		_, err := io.ReadFull(stream, first)
		if err != nil {
			return err
		}
		c.Set("Connection", "close")
		return c.Send(first)
	})
	address := strings.TrimPrefix(serve(t, app), "http://")
	for i, want := range []struct {
		status int
		body   string
		fields []string
	}{
		{200, "hello", []string{`"upstream";r=1`, `"uploads";r=0;t=3600`}},
		{429, "quota-exceeded", []string{`"uploads";r=0;t=3600`}},
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		// The rest of the body never comes.
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nOrigin: %s\r\nContent-Length: %d\r\n\r\nhello, %s", wire.Origin, 64<<20, strings.Repeat("x", 4<<10))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		body := make([]byte, max(0, resp.ContentLength))
		_, _ = io.ReadFull(resp.Body, body)
		_ = conn.Close()
		if resp.StatusCode != want.status || !strings.Contains(string(body), want.body) || (resp.Header.Get("Content-Encoding") == "") != (i == 1) {
			t.Errorf("request %d: %d %v %q", i, resp.StatusCode, resp.Header, body)
		}
		if got := resp.Header["Ratelimit"]; strings.Join(got, ", ") != strings.Join(want.fields, ", ") {
			t.Errorf("request %d: RateLimit %q", i, got)
		}
		if exposed := strings.Join(resp.Header["Access-Control-Expose-Headers"], ", "); exposed != "X-Own, RateLimit, RateLimit-Policy, Retry-After" {
			t.Errorf("request %d: exposed %q", i, exposed)
		}
	}
	if strings.Contains(log.String(), "cors_inside") {
		t.Errorf("log: %s", log.String())
	}
}
