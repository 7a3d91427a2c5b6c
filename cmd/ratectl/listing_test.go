package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/examples/recipes/login"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// accounts refuse every log-in.
type accounts struct{}

func (accounts) LogIn(context.Context, string, string) (string, error) { return "", login.ErrWrong }

// examples is what rategen list -json prints of the examples.
var examples = sync.OnceValues(func() ([]byte, error) {
	list := exec.Command("go", "run", "./cmd/rategen", "list", "-json", "./examples/...")
	list.Dir = "../.."
	return list.Output()
})

// listExamples has the command read a listing of the examples.
func (b *bench) listExamples(t *testing.T) {
	t.Helper()
	all, err := examples()
	limittest.OK(t, err)
	b.env["RATECTL_RULES"] = filepath.Join(t.TempDir(), "rules.jsonl")
	limittest.OK(t, os.WriteFile(b.env["RATECTL_RULES"], all, 0o600))
}

// The rules of a listing have the keys of those that the generated code has, whatever
// their options: what a wrapper has counted is found, and a reset lets it go on.
func TestListing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.listExamples(t)
	limiter := runtime.New(runtime.NewRedisStore(b.client, runtime.WithTimeout(20*time.Second), runtime.WithRefusalMemory(0)),
		runtime.WithNamespace("orders"), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	service := login.NewRateLimitedAccounts(accounts{}, limiter)
	tries := func(n int) (refused int) {
		for range n {
			if _, err := service.LogIn(context.Background(), "Ada:1", ""); err != login.ErrWrong {
				refused++
			}
		}
		return refused
	}
	if refused := tries(7); refused != 2 {
		t.Fatalf("%d of 7 tries refused, want 2", refused)
	}
	b.run("keys", "login.user").wants(t, 0, `KEY.*\nada%3A1 +blocked +5/5 .*`, "")
	b.run("reset", "-parts", "login.user", "ada:1", "-yes").wants(t, 0, ".*", "")
	if refused := tries(5); refused != 0 {
		t.Errorf("%d tries refused after the reset", refused)
	}
}

// Every algorithm, storage and division of a window that a listing may have is the
// rule that it says.
func TestRuleOf(t *testing.T) {
	t.Parallel()
	base := runtime.Rule{Name: "r", Prefix: "p:", Window: time.Minute, Max: 5, Source: ": "}
	for line, change := range map[string]func(*runtime.Rule){
		`"algorithm":"sliding-log","storage":"packed","resolution":"100ms"`: func(r *runtime.Rule) { r.Storage, r.Resolution = runtime.StoragePacked, 100*time.Millisecond },
		`"algorithm":"sliding-counter","buckets":"auto"`:                    func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, rule.AdaptiveBuckets() },
		`"algorithm":"sliding-counter","buckets":"6x10"`:                    func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, rule.LayeredBuckets(6, 10) },
		`"algorithm":"sliding-counter","buckets":"30"`:                      func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, rule.EqualBuckets(30) },
		`"algorithm":"fixed-window","block":"1h0m0s"`:                       func(r *runtime.Rule) { r.Algorithm, r.Block = runtime.FixedWindow, time.Hour },
		`"algorithm":"leaky-bucket","wait":"2s","burst":7,"message":"m"`: func(r *runtime.Rule) {
			r.Algorithm, r.Wait, r.Burst, r.Message = runtime.LeakyBucket, 2*time.Second, 7, "m"
		},
		`"algorithm":"sliding-log","hold":"retryAfter(#err)"`: func(r *runtime.Rule) { r.Hold = true },
		`"algorithm":"sliding-log","hold":true`:               func(r *runtime.Rule) { r.Hold = true },
		`"algorithm":"concurrency"`:                           func(r *runtime.Rule) { r.Algorithm = runtime.Concurrency },
	} {
		want := base
		change(&want)
		rules, err := parseListing(strings.NewReader(`{"name":"r","prefix":"p:","window":"1m0s","max":"5","mode":"enforce",` + line + `}`))
		if err != nil || len(rules) != 1 || fmt.Sprintf("%+v", *rules[0].Rule) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: got %+v, %v", line, rules, err)
		}
	}
}
