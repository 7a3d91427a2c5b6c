package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rategen/rategen/internal/testkit/leaks"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/ratepage"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// TestServes reads the page and the metrics while customers call, until one of them is refused.
func TestServes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	says, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", "", out) }()
	defer http.DefaultClient.CloseIdleConnections()
	var page string
	for lines := bufio.NewScanner(says); page == "" && lines.Scan(); {
		page = regexp.MustCompile(`http://\S+/limits/`).FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, says) }()
	for _, has := range [][2]string{
		{page, "<title>"}, {page + "api/rules", `"orders.Service.Create"`}, {page + "../metrics", `rategen_rule_limit\{rule="orders.Service.Create"\} 10`},
		{page + "../metrics", `rategen_decisions_total\{rule="orders.Service.Create",.*verdict="refused"\} [1-9]`},
	} {
		limittest.Eventually(t, strings.Join(has[:], " has "), func() bool {
			text, err := get(has[0])
			return err == nil && regexp.MustCompile(has[1]).MatchString(text)
		})
	}
	cancel()
	limittest.OK(t, <-ended)
	limittest.OK(t, out.Close())
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
	if err := run(t.Context(), l.Addr().String(), "", io.Discard); err == nil || !strings.Contains(err.Error(), "-listen") {
		t.Errorf("got %v", err)
	}
}
