package wire

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

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// Uploads returns a limit of one request with a body an hour.
func Uploads() ratehttp.RequestLimit {
	return ratehttp.RequestLimit{
		Limiter: runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.DiscardHandler))),
		Rule:    &runtime.Rule{Name: "uploads", Window: time.Hour, Max: 1},
		Skip:    func(r *http.Request) bool { return r.ContentLength == 0 },
	}
}

// Upload sets fields of an answer, and returns the beginning of a body, which is the answer's.
func Upload(set func(name, value string), body io.Reader) ([]byte, error) {
	set("RateLimit", `"upstream";r=1`)
	set("Content-Encoding", "own")
	if body == nil {
		return []byte("no stream"), nil
	}
	first := make([]byte, 5)
	_, err := io.ReadFull(body, first)
	set("Connection", "close")
	return first, err
}

// CheckStream wants a server at a URL to answer POST / with what [Upload] returns, behind
// [Uploads], its adapter with ratehttp.WithCORS, and CORS for [Origin] that exposes X-Own: of a
// large request the header is enough for a refusal, and the handler of one that is admitted has
// the body as a stream. What an answer has already is seen, and added to. The log is the
// adapter's.
func CheckStream(t *testing.T, url string, log *strings.Builder) {
	for i, want := range []struct {
		status int
		body   string
		fields []string
	}{
		{200, "hello", []string{`"upstream";r=1`, `"uploads";r=0;t=3600`}},
		{429, "quota-exceeded", []string{`"uploads";r=0;t=3600`}},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		// The rest of the body never comes.
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nOrigin: %s\r\nContent-Length: %d\r\n\r\nhello, %s", Origin, 64<<20, strings.Repeat("x", 4<<10))
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
