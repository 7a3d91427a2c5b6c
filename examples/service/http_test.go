package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/rategen/rategen/examples/service/employee"
	"github.com/rategen/rategen/runtime"
)

func newTestHandler(store runtime.Store, opts ...runtime.Option) http.Handler {
	directory := employee.NewDirectory(employee.Employee{ID: "1001", Name: "Lin Yue", Email: "lin.yue@example.com"})
	opts = append(opts, runtime.WithLogger(slog.New(slog.DiscardHandler)))
	return newHandler(employee.NewRateLimitedEmployeeService(directory, runtime.New(store, opts...)), slog.New(slog.DiscardHandler))
}

func get(h http.Handler, target, remoteAddr string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = remoteAddr
	// What the client claims must not count.
	r.Header.Set("X-Forwarded-For", strconv.FormatInt(time.Now().UnixNano(), 10))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func checkJSON(t *testing.T, w *httptest.ResponseRecorder, status int, field, want string) {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v in %q", err, w.Body)
	}
	mediaType := "application/json"
	if field == "detail" {
		mediaType = "application/problem+json"
	}
	if w.Code != status || body[field] != want || w.Header().Get("Content-Type") != mediaType {
		t.Fatalf("got %d %v %v, want %d and %s %q", w.Code, w.Header(), body, status, field, want)
	}
}

func TestByID(t *testing.T) {
	h := newTestHandler(runtime.NewMemoryStore())
	for range 5 {
		checkJSON(t, get(h, "/employees/1001", "203.0.113.7:4711"), http.StatusOK, "name", "Lin Yue")
	}
	w := get(h, "/employees/1001", "203.0.113.7:4711")
	checkJSON(t, w, http.StatusTooManyRequests, "detail", "查询太快啦，喝杯茶再来")
	if seconds, err := strconv.Atoi(w.Header().Get("Retry-After")); err != nil || seconds < 1 || seconds > 10 {
		t.Errorf("Retry-After: %q", w.Header().Get("Retry-After"))
	}
	checkJSON(t, get(h, "/employees/9", "203.0.113.7:4711"), http.StatusNotFound, "error", "no such employee")
}

func TestByEmailCountsTheConnectionsAddress(t *testing.T) {
	h := newTestHandler(runtime.NewMemoryStore())
	const target = "/employees?email=lin.yue@example.com"
	for port := range 100 {
		w := get(h, target, net.JoinHostPort("203.0.113.7", strconv.Itoa(1024+port)))
		checkJSON(t, w, http.StatusOK, "id", "1001")
	}
	checkJSON(t, get(h, target, "203.0.113.7:4711"), http.StatusTooManyRequests, "detail", "rate limit exceeded")
	checkJSON(t, get(h, target, "203.0.113.8:4711"), http.StatusOK, "id", "1001")
}

// failing is a service whose calls end with an error.
type failing struct{ err error }

func (f failing) GetByID(context.Context, string) (*employee.Employee, error)    { return nil, f.err }
func (f failing) GetByEmail(context.Context, string) (*employee.Employee, error) { return nil, f.err }

func TestUnavailableAndOtherErrors(t *testing.T) {
	addr, err := refusedAddr()
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(addr, runtime.DefaultTimeout)
	defer func() { _ = client.Close() }()
	quietGoRedis(slog.New(slog.DiscardHandler))

	closed := newTestHandler(runtime.NewRedisStore(client), runtime.WithFailurePolicy(runtime.FailClosed))
	if w := get(closed, "/employees/1001", "203.0.113.7:4711"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("fail closed: %d %s", w.Code, w.Body)
	}
	open := newTestHandler(runtime.NewRedisStore(client))
	checkJSON(t, get(open, "/employees/1001", "203.0.113.7:4711"), http.StatusOK, "id", "1001")

	broken := newHandler(failing{errors.New("secret")}, slog.New(slog.DiscardHandler))
	checkJSON(t, get(broken, "/employees/1001", "203.0.113.7:4711"), http.StatusInternalServerError, "error", "internal error")
}

func TestServeLetsRequestsFinish(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stop() // the server is told to stop while this request is under way
		writeError(w, http.StatusOK, "finished")
	})
	served := make(chan error, 1)
	go func() { served <- serve(ctx, l, h, func() {}) }()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
