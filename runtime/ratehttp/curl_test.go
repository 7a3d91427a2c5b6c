package ratehttp_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// curl returns what curl prints, and skips the test where there is no curl.
func curl(t *testing.T, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{"--silent", "--show-error", "--noproxy", "*"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("curl %s: %v", args, err)
	}
	return out
}

// What curl receives is an answer by the standards.
func TestCurl(t *testing.T) {
	rule := &runtime.Rule{Name: "shop.Orders.List", Window: time.Hour, Max: 1}
	server := httptest.NewServer(ratehttp.Middleware()(ratehttp.RequestLimit{Limiter: newLimiter(), Rule: rule}.Wrap(http.NotFoundHandler())))
	defer server.Close()
	for i, want := range []int{404, 429, 429} {
		args := []string{"--include", server.URL, "--header", "X-Forwarded-For: 198.51.100.1"}
		if i == 2 {
			args = append(args, "--head")
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(curl(t, args...))), &http.Request{Method: map[bool]string{true: "HEAD", false: "GET"}[i == 2]})
		if err != nil {
			t.Fatal(err)
		}
		limits, policies := parse(t, resp.Header, "RateLimit"), parse(t, resp.Header, "RateLimit-Policy")
		if resp.StatusCode != want || len(limits) != 1 || len(policies) != 1 || limits[0].Name != "Orders.List" || limits[0].Params["r"] != int64(0) {
			t.Errorf("request %d: %d %v %v", i, resp.StatusCode, limits, policies)
		}
		if i == 1 && problemOf(t, resp)["status"] != 429. {
			t.Error("the document is about another status")
		}
		if retry := resp.Header.Get("Retry-After"); (retry != "") != (want == 429) || len(retry) > 4 {
			t.Errorf("request %d: Retry-After %q", i, retry)
		}
	}
}

// curl waits as long as it is told to, and then gets its answer.
func TestCurlRetries(t *testing.T) {
	if !effort.More() {
		t.Skip("waits for a window to pass")
	}
	rule := &runtime.Rule{Name: "x", Window: 2 * time.Second, Max: 1}
	server := httptest.NewServer(ratehttp.RequestLimit{Limiter: newLimiter(), Rule: rule}.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	curl(t, server.URL)
	start := time.Now()
	out := curl(t, "--retry", "9", "--include", server.URL)
	responses := strings.Count(string(out), "HTTP/1.1 ")
	if !strings.Contains(string(out), "HTTP/1.1 200 OK") || responses != 2 && time.Since(start) < 2*time.Second {
		t.Errorf("%d answers:\n%s", responses, out)
	}
}
