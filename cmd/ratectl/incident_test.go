package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// asService is a variable by which the program with the tests is a service on a cluster, whose nodes
// it has.
const asService = "RATECTL_TEST_SERVICE"

// asNewer is a variable by which the service is a newer version of itself.
const asNewer = "RATECTL_TEST_NEWER"

// service starts the program with the tests as a service.
func service(t *testing.T, addrs []string, env ...string) *exec.Cmd {
	t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(append(os.Environ(), asService+"="+strings.Join(addrs, ",")), env...)
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	limittest.OK(t, err)
	t.Cleanup(func() {
		_ = in.Close()
		if err := process.Wait(); err != nil && process.ProcessState.Exited() {
			t.Error(err)
		}
	})
	return process
}

// until runs a command again while something is on its way, such as a report or another master.
func (b *bench) until(t *testing.T, line, out string) {
	t.Helper()
	wanted, a := regexp.MustCompile(`(?s)`+out), answer{}
	for begin := time.Now(); time.Since(begin) < 2*time.Minute && a.code != wrongUsage; time.Sleep(100 * time.Millisecond) {
		if a = b.run(strings.Split(line, " ")...); a.code == 0 && wanted.MatchString(a.out) {
			return
		}
	}
	t.Fatalf("%s: exit code %d, %q, %q, want %q", line, a.code, a.out, a.err, out)
}

// serve has a customer call ten times a second, until standard input ends.
func serve(nodes string) {
	logging.Disable() // a master dies
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: strings.Split(nodes, ",")})
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(time.Second)), runtime.WithNamespace("orders"),
		runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithOverrides(override.Redis(client, "orders:limits"), 100*time.Millisecond))
	rule := &runtime.Rule{Name: "model.tokens", Prefix: "rate_limit:model:", Window: time.Minute, Max: 10, Algorithm: runtime.TokenBucket, Burst: 20}
	if os.Getenv(asNewer) != "" {
		rule.Max = 15
	}
	limiter.Register(rule)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		_, _ = limiter.Take(ctx, rule.Limit(runtime.NewKey().AddString("acme").AddString("ann")))
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	_ = limiter.Close()
	os.Exit(0)
}

// TestIncident is what an operator does about a customer who is refused, with three processes on a
// cluster of which a master dies.
func TestIncident(t *testing.T) {
	if !effort.Full() {
		t.Skip("waits for reports and an election: in a full run only")
	}
	t.Parallel()
	cluster := redistest.StartCluster(t)
	client := cluster.Client(t)
	b := newBench(t, client, cluster.Nodes[len(cluster.Nodes)-1].Addr) // a replica, which lives
	declared := strings.Split(listing, "\n")[1]                        // of the processes
	limittest.OK(t, os.WriteFile(b.env["RATECTL_RULES"], []byte(declared), 0o600))
	for range 3 {
		service(t, cluster.Addrs())
	}
	until := func(line, out string) { t.Helper(); b.until(t, line, out) }
	until("override ls", `in force in 3 of the 3`)
	// "Acme gets 429. Why, and since when?"
	until("find acme", `model.tokens +acme:ann +(refused|near) +\d+/20 .* \d+, last \S+Z/\S+Z +-\n`)
	until("refused -since 3h acme", `model.tokens +acme:ann +\d+ +\S+Z/\S+Z\n`)
	until("override set model.tokens -keys acme:ann -max 6000 -n", `there was none; callers that are counted now: 1, refused now: [01], with the change: 0`)
	b.run("override", "set", "model.tokens", "-keys", "acme:ann", "-max", "6000", "-for", "1h", "-m", "ticket 7", "-wait", "1m").
		wants(t, 0, `.*in force in 3 of the 3 processes that report and follow the hash\n`, "")
	until("find acme", `model.tokens +acme:ann +(ok|near) +.* \{"max":6000,"until":"\S+Z"\} for acme:ann, by ada at \S+Z: ticket 7\n`)

	cluster.Master(cluster.Slot("orders:limits")).Kill()
	until("block model.tokens acme:ann -m abuse -wait 1m", `in force in 3 of the 3`)
	until("find acme", `model.tokens +acme:ann +blocked +.*"block":true.* for acme:ann, by ada at \S+Z: abuse\n`)
	b.run("undo", "-m", "a mistake", "-wait", "1m").wants(t, 0, `.*in force in 3 of the 3.*`, "")
	until("reset model.tokens acme:ann -yes -m fresh", `acme:ann of rule model.tokens is reset; it was \w+, with \d+ used`)
	until("history", `\d+ +\S+Z +ada +acme:ann of rule model.tokens +"\w+, \d+ used" +reset +fresh
\d+ +\S+Z +ada +acme:ann of rule model.tokens +\{.*"block":true.*\} +\{"max":6000,.*\} +undo \d+: a mistake
.*\{"max":6000,.* abuse
.* - +\{"max":6000,.*\} +ticket 7\n`)
	until("doctor", `processes +ok +- +the overrides are in force in 3 of the 3 processes that report and follow the hash +-\n(processes +ok .*\n)*processes +ok +- +3 report, and all`)
}
