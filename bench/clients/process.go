package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/time/rate"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// variable is the variable of the environment that makes this program a replica, and has
// its job as JSON.
const variable = "BENCH_CLIENTS_JOB"

// A job is what a replica does until its standard input ends.
type job struct {
	Replica, Replicas int
	Callers           int // that call again and again
	URL, Redis        string
	Alone             bool // each replica has its share by itself, with x/time/rate
	Max               int64
	Window, Margin    time.Duration
	Least             int64 // above 0: the peer may set the max
	Fail              runtime.FailurePolicy
	Timeout           time.Duration // of Redis
}

// A report is what a replica says of its calls at its end.
type report struct {
	Undecided int           // calls that were not sent since Redis was away
	Failed    []string      // other errors, the first few
	Longest   time.Duration // that a call has taken, the last ones not counted
}

// runJob runs the replica that the environment asks for, and reports whether it does.
func runJob() bool {
	text := os.Getenv(variable)
	if text == "" {
		return false
	}
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients: replica:", err)
		os.Exit(1)
	}
	return true
}

func (j *job) run() error {
	logging.Disable()
	client, end, err := j.client()
	if err != nil {
		return err
	}
	defer end()
	ctx, stop := context.WithCancel(context.Background())
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var calls atomic.Int64
	var mu sync.Mutex
	var all report
	var wait sync.WaitGroup
	for range j.Callers {
		wait.Go(func() {
			for ctx.Err() == nil {
				begin := time.Now()
				err := j.call(ctx, client, calls.Add(1))
				took := time.Since(begin)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				all.add(err, took)
				mu.Unlock()
				if err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	wait.Wait()
	return json.NewEncoder(os.Stdout).Encode(all)
}

func (r *report) add(err error, took time.Duration) {
	r.Longest = max(r.Longest, took)
	switch {
	case errors.Is(err, runtime.ErrUnavailable):
		r.Undecided++
	case err != nil && len(r.Failed) < 3:
		r.Failed = append(r.Failed, err.Error())
	}
}

func (j *job) call(ctx context.Context, client *http.Client, n int64) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, j.URL, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Replica", strconv.Itoa(j.Replica))
	r.Header.Set("Call", strconv.FormatInt(n, 10))
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// client returns the client of the job, and what ends it.
func (j *job) client() (*http.Client, func(), error) {
	next := &http.Transport{MaxIdleConnsPerHost: j.Callers}
	if j.Alone {
		share := float64(j.Max) / float64(j.Replicas)
		l := rate.NewLimiter(rate.Limit(share/j.Window.Seconds()), max(1, int(share)))
		return &http.Client{Transport: alone{l, next}}, func() {}, nil
	}
	connection := redis.NewClient(&redis.Options{Addr: j.Redis, MaxRetries: -1, DialerRetries: 1})
	store := runtime.NewRedisStore(connection, runtime.WithTimeout(j.Timeout))
	limiter := runtime.New(store, runtime.WithReplicas(j.Replicas), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	limit := rateclient.PeerLimit{
		Rule:   runtime.Rule{Name: "peer", Window: j.Window, Max: j.Max, Fail: j.Fail},
		Margin: j.Margin,
	}
	if j.Least > 0 {
		limit.Least, limit.Most = j.Least, j.Max
	}
	transport, err := rateclient.New(limiter, []rateclient.Peer{{Pattern: "/", Wait: time.Hour, Limits: []rateclient.PeerLimit{limit}}},
		rateclient.WithNext(next), rateclient.WithLogger(slog.New(slog.DiscardHandler)))
	return &http.Client{Transport: transport}, func() { _, _ = limiter.Close(), connection.Close() }, err
}

// alone limits calls by what this process knows.
type alone struct {
	limiter *rate.Limiter
	next    http.RoundTripper
}

func (a alone) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := a.limiter.Wait(r.Context()); err != nil {
		return nil, err
	}
	return a.next.RoundTrip(r)
}
