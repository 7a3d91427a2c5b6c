package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/runtime/ratepage"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// An output is written to and read at a time.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// refused finds the lines that say how many calls were refused.
var refused = regexp.MustCompile(`(?m)^   orders\.Service\.Create: (\d+) per 1s; \d+ calls a second, (\d+) % of them refused$`)

// TestStory has the whole story told: the limit changes while the service runs, and so
// does the share of refused calls. Page and metrics are there meanwhile.
func TestStory(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := new(output)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", "", 4*time.Second, out) }()
	defer http.DefaultClient.CloseIdleConnections()

	var lines [][]string
	seen := false
	for begin := time.Now(); len(lines) < 4; time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("the story does not go on:\n%s", out)
		}
		lines = refused.FindAllStringSubmatch(out.String(), -1)
		if len(lines) == 1 && !seen {
			seen = true
			page := regexp.MustCompile(`http://\S+/limits/`).FindString(out.String())
			for url, want := range map[string]string{
				page: "<title>", page + "api/rules": `"orders.Service.Create"`, page + "../metrics": `rategen_rule_limit{rule="orders.Service.Create"}`,
			} {
				if text, err := get(url); err != nil || !strings.Contains(text, want) {
					t.Errorf("%s: %v, without %s:\n%.500s", url, err, want, text)
				}
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var limits, shares []int
	for _, line := range lines {
		limit, _ := strconv.Atoi(line[1])
		share, _ := strconv.Atoi(line[2])
		limits, shares = append(limits, limit), append(shares, share)
	}
	if got := fmt.Sprint(limits); got != "[10 30 10 10]" {
		t.Errorf("limits %s", got)
	}
	// A customer makes 25 of 38 calls a second: 15 too many for the directive, and
	// all of them while it is blocked.
	if shares[1] >= shares[0] || shares[2] <= shares[0] || shares[3] >= shares[2] {
		t.Errorf("%d %% were refused, want fewer with a higher limit and more while the busiest customer is blocked", shares)
	}
}

func get(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return string(text), err
}

// TestForeignNames wants nobody to read keys or change limits who has come by a foreign
// name, as a site does that has its name lead here.
func TestForeignNames(t *testing.T) {
	h := handler(ratepage.New(ratepage.WithPlainKeys(), ratepage.WithActions(everybody, nil)), prometheus.NewRegistry())
	for host, want := range map[string]bool{
		"127.0.0.1:8080": true, "[::1]:8080": true, "localhost:8080": true,
		"evil.example:8080": false, "127.0.0.1.evil.example:8080": false, "evil.example": false, "": false,
	} {
		for _, path := range []string{"/limits/", "/limits/api/state", "/limits/api/overrides", "/metrics"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if (w.Code == http.StatusOK) != want {
				t.Errorf("host %q, %s: %d", host, path, w.Code)
			}
		}
	}
}

// TestAddressInUse wants an address that is taken to be an error that says what helps.
func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := run(t.Context(), l.Addr().String(), "", time.Second, io.Discard); err == nil || !strings.Contains(err.Error(), "-listen") {
		t.Errorf("got %v", err)
	}
}
