package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/examples/client"
	"github.com/rategen/rategen/examples/client/partner"
	"github.com/rategen/rategen/examples/client/stream"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
)

// A service is what clients call, in place of the network. It answers 200, or once it has refused
// a call counts those that come too early.
type service struct {
	mu            sync.Mutex
	refusal       http.Header // of the next call, or nil
	fields        http.Header // of others
	body          string
	until         time.Time
	early, served int
}

// refuses has the next call be refused for a time, also by some fields.
func (s *service) refuses(after time.Duration, fields ...string) {
	s.refusal = http.Header{"Retry-After": {fmt.Sprint(after.Seconds())}}
	for i := 0; i < len(fields); i += 2 {
		s.refusal.Set(fields[i], fields[i+1])
	}
	s.until = time.Now().Add(after)
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &http.Response{StatusCode: http.StatusOK, Header: s.fields, Request: r, Body: io.NopCloser(strings.NewReader(s.body))}
	if s.refusal != nil {
		answer.StatusCode, answer.Header, s.refusal = http.StatusTooManyRequests, s.refusal, nil
		return answer, nil
	}
	if time.Now().Before(s.until) {
		s.early++
	}
	s.served++
	return answer, nil
}

// Complete has the model be such a service.
func (s *service) Complete(_ context.Context, _ string, _ int) (string, int, error) {
	answer, err := s.RoundTrip(nil)
	if err == nil && answer.StatusCode != http.StatusOK {
		return "", -1, &client.ProviderError{StatusCode: answer.StatusCode, Header: answer.Header}
	}
	return "", 100, err
}

// onReplicas plays a test in fake time with two limiters on one store.
func onReplicas(t *testing.T, test func(t *testing.T, s *service, limiters []*runtime.Limiter)) {
	synctest.Test(t, func(t *testing.T) {
		s, before := new(service), http.DefaultTransport
		http.DefaultTransport = s
		defer func() { http.DefaultTransport = before }()
		store := runtime.NewMemoryStore()
		var limiters []*runtime.Limiter
		for range 2 {
			limiter := runtime.New(store, runtime.WithLogger(slog.New(slog.DiscardHandler)))
			defer limiter.Close()
			limiters = append(limiters, limiter)
		}
		test(t, s, limiters)
	})
}

// made makes something of each replica.
func made[T any](t *testing.T, limiters []*runtime.Limiter, of func(*runtime.Limiter) (T, error)) (all []T) {
	for _, limiter := range limiters {
		one, err := of(limiter)
		limittest.OK(t, err)
		all = append(all, one)
	}
	return all
}

// get makes a call, and returns its status.
func get(ctx context.Context, c *http.Client) (int, error) {
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
	answer, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// limitedFor wants an error to be a refusal by a rule, for about so long.
func limitedFor(t *testing.T, err error, rule string, least, most time.Duration) {
	t.Helper()
	limited, ok := errors.AsType[*runtime.LimitedError](err)
	if !ok || limited.Rule != rule || limited.RetryAfter < least || limited.RetryAfter > most {
		t.Errorf("%v, want a refusal by %s for %v to %v", err, rule, least, most)
	}
}

// TestClient has replicas call an API that refuses a request. None of them calls it before
// the time that it has named, and all calls succeed.
func TestClient(t *testing.T) {
	onReplicas(t, func(t *testing.T, s *service, limiters []*runtime.Limiter) {
		replicas := made(t, limiters, func(l *runtime.Limiter) (*http.Client, error) { return client.New(l, "api.test") })
		s.refuses(2 * time.Second)
		var all sync.WaitGroup
		call := func(c *http.Client) {
			if status, err := get(t.Context(), c); status != http.StatusOK || err != nil {
				t.Error(status, err)
			}
		}
		all.Go(func() { call(replicas[0]) }) // is refused, and tried again
		synctest.Wait()
		for i := range 12 {
			all.Go(func() { call(replicas[i%2]) })
		}
		all.Wait()
		if s.early != 0 || s.served != 13 {
			t.Errorf("%d calls came too early, and %d were served of 13", s.early, s.served)
		}
	})
}

// TestModel has replicas call a provider that refuses one of them. The others wait until the time
// that it has named, unless they have not so much. All then go on, and are charged what they used.
func TestModel(t *testing.T) {
	onReplicas(t, func(t *testing.T, s *service, limiters []*runtime.Limiter) {
		replicas := made(t, limiters, func(l *runtime.Limiter) (client.Model, error) { return client.NewRateLimitedModel(s, l), nil })
		s.refuses(20 * time.Second)
		var refusal *client.ProviderError
		if _, _, err := replicas[0].Complete(t.Context(), "", 1000); !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		hurried, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, _, err := replicas[1].Complete(hurried, "", 1000)
		limitedFor(t, err, "client.Model.Complete", 10*time.Second, 20*time.Second)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, _, err := replicas[i%2].Complete(t.Context(), "", 4000)
				limittest.OK(t, err)
			})
		}
		all.Wait()
		if s.early != 0 || s.served != 20 {
			t.Errorf("%d calls came too early, and %d were served of 20", s.early, s.served)
		}
		synctest.Wait() // what is not used comes back
		_, _, err = replicas[0].Complete(hurriedNow(t), "", 90_000-1000-20*100)
		limittest.OK(t, err)
	})
}

// hurriedNow is a context of a call that has no time to wait.
func hurriedNow(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestPartner has replicas use up a quota, which the partner says is 100 and not 10,000: calls in the
// background stop at 80. When the partner says that none is left nobody calls it for the rest of its
// day, and each call says until when.
func TestPartner(t *testing.T) {
	onReplicas(t, func(t *testing.T, s *service, limiters []*runtime.Limiter) {
		replicas := made(t, limiters, func(l *runtime.Limiter) (*http.Client, error) { return partner.New(l, "api.test") })
		s.fields = http.Header{"Ratelimit-Policy": {`"day";q=100;w=86400`}}
		until := func(ctx context.Context) (n int) {
			for ; n < 200; n++ {
				if _, err := get(ctx, replicas[n%2]); err != nil {
					limitedFor(t, err, "partner.day", 20*time.Hour, 25*time.Hour)
					break
				}
			}
			return n
		}
		background := partner.Background(t.Context())
		limittest.Equal(t, "calls in the background", until(background), 80)
		for i := range 10 {
			if status, err := get(t.Context(), replicas[i%2]); status != http.StatusOK || err != nil {
				t.Fatalf("a call that somebody waits for: %d, %v", status, err)
			}
		}
		limittest.Equal(t, "more calls in the background", until(background), 0)
		s.refuses(10 * time.Hour)
		if status, err := get(t.Context(), replicas[0]); status != http.StatusTooManyRequests || err != nil {
			t.Fatal(status, err)
		}
		for _, replica := range replicas {
			_, err := get(t.Context(), replica)
			limitedFor(t, err, "partner.day", 9*time.Hour, 10*time.Hour)
		}
		limittest.Equal(t, "calls that the partner saw", s.served, 90)
	})
}

// TestStream has replicas share the tokens of a model. Answers that take less than they have reserved
// leave room for more, those that do not say it keep what they have reserved, and a refusal, which says
// that no tokens are left, holds back both.
func TestStream(t *testing.T) {
	onReplicas(t, func(t *testing.T, s *service, limiters []*runtime.Limiter) {
		replicas := made(t, limiters, func(l *runtime.Limiter) (*stream.Model, error) { return stream.New(l, "api.test", "http://api.test/") })
		const text = `data: {"choices":[{"delta":{"content":"forty"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"-two"}}]}` + "\n\n"
		const usage = `data: {"choices":[],"usage":{"total_tokens":1000}}` + "\n\ndata: [DONE]\n\n"
		ask := func(i int, tokens int64) error {
			var answer strings.Builder
			err := replicas[i%2].Stream(hurriedNow(t), stream.Prompt{Text: "6 times 7?", MaxTokens: tokens}, func(piece string) { answer.WriteString(piece) })
			if err == nil && answer.String() != "forty-two" {
				t.Errorf("the answer is %q", answer.String())
			}
			synctest.Wait()
			return err
		}
		s.body = text + usage
		for i := range 5 { // of 100,000 reserved tokens each: all at once they would not fit
			limittest.OK(t, ask(i, 100_000))
		}
		s.body = text // the stream breaks off
		if err := ask(0, 190_000); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a stream without an end: %v", err)
		}
		limitedFor(t, ask(1, 190_000), "model.tokens", time.Second, time.Minute)
		s.body = text + usage
		s.refuses(5*time.Minute, "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "300s")
		if err := ask(0, 1); err == nil || errors.Is(err, runtime.ErrLimited) {
			t.Errorf("a refusal by the model: %v", err)
		}
		for i := range 2 {
			limitedFor(t, ask(i, 1), "model.requests", 200*time.Second, 301*time.Second)
		}
	})
}
