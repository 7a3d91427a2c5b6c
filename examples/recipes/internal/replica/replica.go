// Package replica runs a test's program several times, as the replicas of a service
// that share a Redis.
package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	// redisAddr is the variable of the environment that makes a program a replica.
	redisAddr = "RECIPE_REPLICA_REDIS"
	// patience is how long a replica waits for Redis: a machine may be busy.
	patience = 30 * time.Second
)

// Main is a TestMain. In a replica it answers the questions that the test asks.
// Questions are answered one after another; serve makes the replica's answer.
func Main[Q, A any](m *testing.M, serve func(*redis.Client) (answer func(Q) A, limiter *runtime.Limiter)) {
	addr := os.Getenv(redisAddr)
	if addr == "" {
		os.Exit(m.Run())
	}
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience})
	answer, limiter := serve(client)
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var question Q
		err := in.Decode(&question)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = out.Encode(answer(question))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "replica:", err)
			os.Exit(1)
		}
	}
	if err := errors.Join(limiter.Close(), client.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
		os.Exit(1)
	}
}

// Limiter returns a limiter that counts in Redis. It refuses calls that Redis does
// not decide, so that none of them is taken for an admitted one.
func Limiter(client *redis.Client, options ...runtime.Option) *runtime.Limiter {
	options = append([]runtime.Option{
		runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithFailurePolicy(runtime.FailClosed),
	}, options...)
	return runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(patience)), options...)
}

// Year is a window that nothing leaves during a test, however slow it is.
const Year = 365 * 24 * time.Hour

// Windows returns an option that gives rules another window.
func Windows(window time.Duration, rules ...string) runtime.Option {
	set := runtime.Overrides{Rules: map[string]rule.Override{}}
	for _, name := range rules {
		set.Rules[name] = rule.Override{Window: &window}
	}
	return runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
		return set, nil
	}), time.Hour)
}

// A Process is a replica, as the test sees it.
type Process[Q, A any] struct {
	t       *testing.T
	command *exec.Cmd
	in      io.Closer
	send    *json.Encoder
	receive *json.Decoder
	once    sync.Once
	killed  bool
}

// Start starts replicas. The test's cleanup ends them.
func Start[Q, A any](t *testing.T, addr string, n int) []*Process[Q, A] {
	t.Helper()
	var all []*Process[Q, A]
	t.Cleanup(func() {
		for _, p := range all { // all end at the same time
			_ = p.in.Close()
		}
		for _, p := range all {
			p.end()
		}
	})
	for range n {
		p := &Process[Q, A]{t: t, command: exec.Command(os.Args[0])}
		p.command.Env = append(os.Environ(), redisAddr+"="+addr)
		p.command.Stderr = os.Stderr
		in, err := p.command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.command.Start(); err != nil {
			t.Fatal(err)
		}
		p.in, p.send, p.receive = in, json.NewEncoder(in), json.NewDecoder(out)
		all = append(all, p)
	}
	return all
}

// Ask sends a question and returns the answer.
func (p *Process[Q, A]) Ask(question Q) A {
	p.t.Helper()
	p.Send(question)
	return p.Receive()
}

// Send sends a question, for [Process.Receive] to return the answer.
func (p *Process[Q, A]) Send(question Q) {
	p.t.Helper()
	if err := p.send.Encode(question); err != nil {
		p.t.Fatal(err)
	}
}

// Receive returns the answer to the first question that has none yet.
func (p *Process[Q, A]) Receive() (answer A) {
	p.t.Helper()
	if err := p.receive.Decode(&answer); err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// Kill ends a replica at once, whatever it is doing.
func (p *Process[Q, A]) Kill() {
	p.killed = true
	_ = p.command.Process.Kill()
	p.end()
}

func (p *Process[Q, A]) end() {
	p.once.Do(func() {
		_ = p.in.Close()
		if err := p.command.Wait(); err != nil && !p.killed {
			p.t.Error(err)
		}
	})
}

// All asks all replicas the same question at the same time.
func All[Q, A any](processes []*Process[Q, A], question Q) (answers []A) {
	for _, p := range processes {
		p.t.Helper()
		p.Send(question)
	}
	for _, p := range processes {
		answers = append(answers, p.Receive())
	}
	return answers
}
