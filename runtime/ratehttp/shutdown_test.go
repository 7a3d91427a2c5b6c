package ratehttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// TestShutdown wants a server that shuts down not to wait for the turns of requests, once the limiter is
// closed: their clients get 503.
func TestShutdown(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{}, 9)
	limiter := newLimiter(runtime.WithObserver(&observe.Observer{Wait: func(_ context.Context, ev observe.WaitEvent) {
		if ev.Waiting {
			waits <- struct{}{}
		}
	}}))
	rule := &runtime.Rule{Name: "shutdown", Window: time.Hour, Max: 1, Wait: time.Hour}
	handler := ratehttp.RequestLimit{Limiter: limiter, Rule: rule}.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server := httptest.NewServer(ratehttp.Middleware()(handler))
	defer server.Close()
	server.Config.RegisterOnShutdown(func() { _ = limiter.Close() })
	codes := make(chan int, 3)
	get := func() {
		response, err := server.Client().Get(server.URL)
		if err != nil {
			codes <- 0
			return
		}
		_ = response.Body.Close()
		codes <- response.StatusCode
	}
	get()
	if code := <-codes; code != http.StatusOK {
		t.Fatal(code)
	}
	for range cap(codes) {
		go get()
		<-waits
	}
	if err := server.Config.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for range cap(codes) {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("a request that waited got %d", code)
		}
	}
}
