package script_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/rule"
)

// TestBytesPerEvent wants events to take the memory that is promised, beyond
// what the key takes with the first one.
func TestBytesPerEvent(t *testing.T) {
	client := ownRedis(t)
	limiter := newLimiter(client)
	for _, test := range []struct {
		name   string
		rule   runtime.Rule
		events int
		cost   int64
		most   float64 // bytes an event; 0: only report
	}{
		{"packed", runtime.Rule{Storage: runtime.StoragePacked}, 10_000, 1, 8.5},
		{"packed in slices", runtime.Rule{Storage: runtime.StoragePacked, Resolution: time.Second}, 10_000, 1, 8.5},
		{"packed, large cost", runtime.Rule{Storage: runtime.StoragePacked}, 10_001, rule.MaxLogCost, 8.5},
		{"packed, few", runtime.Rule{Storage: runtime.StoragePacked}, 64, 1, 12},
		{"zset", runtime.Rule{}, 128, 1, 24},
		{"zset, large cost", runtime.Rule{}, 128, 64, 24},
		{"zset in slices", runtime.Rule{Resolution: time.Second}, 128, 1, 24},
		{"half a zset", runtime.Rule{}, 64, 1, 24},
		{"large zset", runtime.Rule{}, 10_000, 1, 0},
		{"counter", runtime.Rule{Algorithm: runtime.SlidingCounter}, 10_000, 1, 1},
		{"fixed window", runtime.Rule{Algorithm: runtime.FixedWindow}, 10_000, 1, 0.1},
		{"token bucket", runtime.Rule{Algorithm: runtime.TokenBucket}, 10_000, 1, 0.1},
		{"reservations", runtime.Rule{Algorithm: runtime.FixedWindow, Reserve: time.Minute}, 10_000, 1, 150},
		{"few reservations", runtime.Rule{Algorithm: runtime.FixedWindow, Reserve: time.Minute}, 100, 1, 40},
	} {
		r := test.rule
		r.Window, r.Max, r.Prefix = time.Hour, int64(test.events)+1, test.name+":"
		used := func() int64 {
			// 0: look at every element, not at a sample.
			n, err := client.MemoryUsage(t.Context(), onlyKey(t, client, r.Prefix), 0).Result()
			ok(t, err)
			return n
		}
		taken(t, limiter, r.Limit(nil))
		empty := used()
		limits := make([]runtime.Limit, (test.events-1)/int(test.cost))
		for i := range limits {
			limits[i] = r.Limit(nil).WithCost(test.cost)
		}
		for batch := range slices.Chunk(limits, 100) {
			for _, o := range limiter.TakeEach(t.Context(), batch...) {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
			}
		}
		events := 1 + len(limits)*int(test.cost)
		perEvent := float64(used()-empty) / float64(events-1)
		t.Logf("%-16s %6d events: %6.2f bytes an event, %5d in all, %s", test.name, events, perEvent, used(),
			client.ObjectEncoding(t.Context(), onlyKey(t, client, r.Prefix)).Val())
		if test.most > 0 && perEvent > test.most {
			t.Errorf("%s: %.1f bytes an event, want at most %v", test.name, perEvent, test.most)
		}
	}
}

// monitor returns what the server executes until stop is called, a line for each command.
func monitor(t *testing.T, server *redistest.Server) (stop func() []string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	ok(t, err)
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

// TestNumbers wants no number to reach Redis in scientific notation, from Go or from Lua.
func TestNumbers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limiter := newLimiter(server.Client(t))
	stop := monitor(t, server)
	for _, window := range []time.Duration{time.Millisecond, 100_000 * time.Second, rule.MaxWindow} {
		for _, r := range storetest.WaysOf(window, 1_000_000) {
			costs, most := []int64{1, rule.MaxLogCost, 1}, int64(rule.MaxLogCost)
			if !stored(r) {
				r.Max = rule.MaxCount
				costs = []int64{1, 100_000_000, 900_000_000_000, 1}
				if r.Algorithm == runtime.FixedWindow {
					r.Max = rule.MaxAmount
					costs = append(costs, 9_000_000_000_000_000)
				}
				most = r.Max
			}
			r.Resolution = min(r.Resolution, window)
			r.Prefix = fmt.Sprintf("%s%d:", r.Prefix, window)
			limit := r.Limit(key("k"))
			for _, cost := range costs {
				d := taken(t, limiter, limit.WithCost(cost))
				left(t, limiter, limit.WithCost(most))
				if cost < 1_000_000 {
					refunded(t, limiter, d)
				}
			}
		}
	}
	lines := stop()
	if len(lines) < 500 {
		t.Errorf("only %d commands seen", len(lines))
	}
	// As MONITOR shows them: the text or the name of a script, an argument that holds bytes, in
	// which no number is to be read, and a number as Lua and Go write large ones.
	script := regexp.MustCompile(`(?i)^"eval(sha)?" "(\\.|[^"\\])*"`)
	packed := regexp.MustCompile(`"[^"]*\\x(\\.|[^"\\])*"`)
	scientific := regexp.MustCompile(`"[^"]*[0-9](\.[0-9]+)?[eE][+-]?[0-9]+[^"]*"`)
	for _, line := range lines {
		_, command, _ := strings.Cut(line, "] ")
		command = packed.ReplaceAllString(script.ReplaceAllString(command, ""), "")
		if scientific.MatchString(command) {
			t.Errorf("%.300s", command)
		}
	}
}

// onlyKey returns the one key with a prefix.
func onlyKey(t *testing.T, client *redis.Client, prefix string) string {
	t.Helper()
	keys := client.Keys(t.Context(), prefix+"*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q, want one", keys)
	}
	return keys[0]
}
