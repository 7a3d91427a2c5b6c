package runtime_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// scientific is a number as Lua and Go write large ones, and Redis does not
// read them.
var scientific = regexp.MustCompile(`"[^"]*[0-9](\.[0-9]+)?[eE][+-]?[0-9]+[^"]*"`)

// packed is an argument that holds bytes, as MONITOR shows it: no number is to be read
// in it.
var packed = regexp.MustCompile(`"[^"]*\\x(\\.|[^"\\])*"`)

// monitor returns what the server executes until stop is called, a line for
// each command.
func monitor(t *testing.T, server *redistest.Server) (stop func() []string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	const last = "the last command"
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q, %v", line, err)
	}
	lines := make(chan []string)
	go func() {
		defer conn.Close()
		var all []string
		for {
			line, err := in.ReadString('\n')
			if err != nil || strings.Contains(line, last) {
				lines <- all
				return
			}
			all = append(all, strings.TrimSpace(line))
		}
	}()
	return func() []string {
		server.Client(t).Do(context.Background(), "echo", last)
		return <-lines
	}
}

// TestNumbers wants no number to reach Redis in scientific notation, from Go or
// from Lua.
func TestNumbers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	limiter := onRedis(server.Client(t))
	stop := monitor(t, server)
	for _, window := range []time.Duration{time.Millisecond, 100_000 * time.Second, runtime.MaxWindow} {
		for name, rule := range serverRules(window, 1_000_000) {
			costs, most := []int64{1, runtime.MaxLogCost, 1}, int64(runtime.MaxLogCost)
			if !stored(rule) {
				rule.Max = runtime.MaxCount
				costs, most = []int64{1, 100_000_000, 900_000_000_000, 1}, rule.Max
			}
			rule.Resolution = min(rule.Resolution, window)
			rule.Prefix = fmt.Sprintf("%s%d:", rule.Prefix, window)
			limit := rule.Limit(key("k"))
			for _, cost := range costs {
				d, err := limiter.Take(ctx, limit.WithCost(cost))
				if err != nil {
					t.Fatalf("%s, %v, cost %d: %v", name, window, cost, err)
				}
				if _, err := limiter.Peek(ctx, limit.WithCost(most)); err != nil {
					t.Fatalf("%s, %v: %v", name, window, err)
				}
				if cost < 1_000_000 {
					refunded(t, limiter, d, limit.WithCost(cost))
				}
			}
		}
	}
	lines := stop()
	if len(lines) < 500 {
		t.Errorf("only %d commands seen", len(lines))
	}
	for _, line := range lines {
		_, command, _ := strings.Cut(line, "] ")
		name := strings.ToLower(strings.SplitN(command, " ", 2)[0])
		if name == `"eval"` { // the script's text is an argument
			command = regexp.MustCompile(`^"eval" "(\\.|[^"\\])*"`).ReplaceAllString(command, "")
		}
		if name == `"evalsha"` {
			command = regexp.MustCompile(`^"evalsha" "[0-9a-f]*"`).ReplaceAllString(command, "")
		}
		if command = packed.ReplaceAllString(command, ""); scientific.MatchString(command) {
			t.Errorf("%.300s", command)
		}
	}
}
