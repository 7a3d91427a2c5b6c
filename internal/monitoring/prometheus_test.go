package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPrometheus has a real Prometheus scrape a program under load, and asks it every
// query of the dashboard, which all have data, and of the alerts, of which four are due.
// With RATEGEN_TEST_FULL=1 it scrapes for a minute.
func TestPrometheus(t *testing.T) {
	addr := startPrometheus(t, startApp(t))
	if os.Getenv("RATEGEN_TEST_FULL") == "1" {
		time.Sleep(time.Minute)
	}
	queries := panelQueries("10s")
	for _, panel := range slices.Sorted(maps.Keys(queries)) {
		for _, expr := range queries[panel] {
			answer := awaitAnswer(t, addr, expr)
			t.Logf("%s\n%s", panel, answer)
		}
	}
	alerts := alertQueries(t)
	for _, alert := range []string{"RategenBreakerOpen", "RategenUndecided", "RategenPermitsExhausted", "RategenNotInForce"} {
		awaitAnswer(t, addr, alerts[alert])
	}
	for _, alert := range slices.Sorted(maps.Keys(alerts)) {
		answer, err := ask(addr, alerts[alert])
		if err != nil {
			t.Errorf("%s: %v", alert, err)
		}
		t.Logf("%s\n%s", alert, answer)
	}
}

// startPrometheus starts a server that scrapes a program, with files of alerts, and returns
// its address.
func startPrometheus(t *testing.T, app string, alerts ...string) string {
	t.Helper()
	prometheus, dir := binary(t, "prometheus"), t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\nrule_files: [%s]\nscrape_configs:\n- {job_name: shop, static_configs: [{targets: [%q]}]}\n", strings.Join(alerts, ","), app)
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 5 { // somebody else may take the port that was free
		addr := freeAddr(t)
		log := new(bytes.Buffer)
		cmd := exec.Command(prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, addr), "--web.listen-address="+addr, "--log.level=warn")
		cmd.Stderr = log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cmd.Wait()
		}()
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-ended
			if t.Failed() {
				t.Logf("prometheus at %s: %s", addr, log)
			}
		})
		if ready(addr, ended) {
			return addr
		}
	}
	t.Fatal("prometheus does not start")
	return ""
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// ready reports whether a server answers before it ends, within a minute.
func ready(addr string, ended <-chan struct{}) bool {
	deadline := time.After(time.Minute)
	for {
		if response, err := http.Get("http://" + addr + "/-/ready"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ended:
			return false
		case <-deadline:
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// nonzero finds a series that is not 0.
var nonzero = regexp.MustCompile(`(?m) \S*[1-9]\S*$`)

// awaitAnswer asks until a series of the answer is not 0.
func awaitAnswer(t *testing.T, addr, expr string) string {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		answer, err := ask(addr, expr)
		if err == nil && nonzero.MatchString(answer) {
			return answer
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer to %s: %v", expr, err)
		}
	}
}

// ask returns a line for each series of the answer.
func ask(addr, expr string) (string, error) {
	response, err := http.Get("http://" + addr + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	var answer struct {
		Status string
		Data   struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return "", fmt.Errorf("%s: %s", response.Status, body)
	}
	var lines []string
	for _, s := range answer.Data.Result {
		lines = append(lines, fmt.Sprintf("  %v %v", s.Metric, s.Value[1]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// binary returns the path of a program of Prometheus's. Without it the test is
// skipped, or fails if RATEGEN_REQUIRE_PROMETHEUS=1.
func binary(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("RATEGEN_REQUIRE_PROMETHEUS") == "1" {
			t.Fatalf("%v and RATEGEN_REQUIRE_PROMETHEUS=1", err)
		}
		t.Skipf("%s is not on the PATH: Debian's package prometheus has it", name)
	}
	return path
}
