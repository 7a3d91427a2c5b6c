package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
)

// TestStream has two replicas share the tokens of a model. Answers that take less than they
// have reserved leave room for more, those that do not say it keep what they have reserved,
// and a refusal, which says that no tokens are left, holds back both.
func TestStream(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	usage := `data: {"choices":[],"usage":{"total_tokens":1000}}` + "\n\ndata: [DONE]\n\n"
	var mu sync.Mutex
	end, refuse := usage, false
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if refuse {
			w.Header().Set("Retry-After", "300")
			w.Header().Set("X-RateLimit-Remaining-Tokens", "0")
			w.Header().Set("X-RateLimit-Reset-Tokens", "300s")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		for _, piece := range []string{"forty", "-two"} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", piece)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, end)
	}))
	t.Cleanup(api.Close)
	var replicas []*Model
	var limiter *runtime.Limiter
	for range 2 {
		limiter = runtime.New(runtime.NewRedisStore(redis.Client(t), runtime.WithTimeout(10*time.Second)),
			runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))
		t.Cleanup(func() { _ = limiter.Close() })
		replica, err := New(limiter, "127.0.0.1", api.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(replica.client.CloseIdleConnections)
		replicas = append(replicas, replica)
	}
	// It has no time to wait: the limits would be as new in a minute.
	ask := func(i int, tokens int64) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var text strings.Builder
		err := replicas[i%2].Stream(ctx, Prompt{"6 times 7?", tokens}, func(piece string) { text.WriteString(piece) })
		if err == nil && text.String() != "forty-two" {
			t.Errorf("the answer is %q", text.String())
		}
		return err
	}
	// left waits until at least so many tokens are left, and no more than drain meanwhile.
	left := func(want int64) {
		t.Helper()
		key := new(runtime.Key)
		rateclient.Credential(&http.Request{}, key)
		rule := &runtime.Rule{Name: "model.tokens", Window: time.Minute, Max: 200_000, Algorithm: runtime.TokenBucket, Hold: true}
		for deadline := time.Now().Add(time.Minute); ; {
			d, err := limiter.Peek(t.Context(), rule.Limit(key))
			if err == nil && d.Remaining >= want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d tokens are left, want %d; %v", d.Remaining, want, err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	for i := range 5 { // of 100,000 reserved tokens each: all at once they would not fit
		if err := ask(i, 100_000); err != nil {
			t.Fatal(err)
		}
		left(190_000)
	}
	mu.Lock()
	end = "" // the stream breaks off
	mu.Unlock()
	if err := ask(0, 190_000); err == nil {
		t.Error("a stream without an end is no error")
	}
	var limited *runtime.LimitedError
	if err := ask(1, 190_000); !errors.As(err, &limited) || limited.Rule != "model.tokens" {
		t.Errorf("what an unknown answer has reserved is free: %v", err)
	}
	mu.Lock()
	end, refuse = usage, true
	mu.Unlock()
	if err := ask(0, 1); err == nil || errors.As(err, &limited) {
		t.Errorf("a refusal by the model: %v", err)
	}
	for i := range 2 {
		if err := ask(i, 1); !errors.As(err, &limited) || limited.RetryAfter < 200*time.Second {
			t.Errorf("replica %d, while the model holds calls back: %v", i, err)
		}
	}
}
