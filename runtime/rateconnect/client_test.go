package rateconnect_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rateconnect"
)

// outgoing returns a transport that admits so many calls, and what it has been held for.
func outgoing(t *testing.T, most int64) (*rateclient.Transport, *atomic.Int64) {
	t.Helper()
	held := new(atomic.Int64)
	transport, err := rateclient.New(limiter(t, runtime.WithObserver(&observe.Observer{
		Hold: func(_ context.Context, ev observe.HoldEvent) { held.Store(int64(ev.For)) },
	})), []rateclient.Peer{{
		Pattern: "127.0.0.1/shop.v1.Orders/",
		Limits:  []rateclient.PeerLimit{{Rule: runtime.Rule{Name: "peer", Window: time.Hour, Max: most}}},
	}}, rateclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return transport, held
}

// A client in any protocol makes no more calls than its limit admits, and a refusal by the
// peer holds it back for as long as the peer says.
func TestClientInterceptor(t *testing.T) {
	refusal := func(code connect.Code, d time.Duration, field string) error {
		err := connect.NewError(code, errors.New("no"))
		if d != 0 {
			detail, _ := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
			err.AddDetail(detail)
		}
		if field != "" {
			err.Meta().Set("Retry-After", field)
		}
		return err
	}
	for name, c := range map[string]struct {
		err  error
		max  int64
		held time.Duration
	}{
		"no room":                  {nil, 1, 0},
		"RetryInfo":                {refusal(connect.CodeResourceExhausted, 90*time.Second, ""), 10, 90 * time.Second},
		"Retry-After":              {refusal(connect.CodeResourceExhausted, 0, "7"), 10, 7 * time.Second},
		"unavailable, Retry-After": {refusal(connect.CodeUnavailable, 0, "7"), 10, 7 * time.Second},
		"another code":             {refusal(connect.CodeNotFound, time.Second, "7"), 10, 0},
	} {
		for _, w := range ways {
			url := serve(t, serving(returns(c.err)))
			for _, kind := range []string{"unary", "stream"} {
				transport, held := outgoing(t, c.max)
				w := w
				w.opts = append(w.opts[:len(w.opts):len(w.opts)], connect.WithInterceptors(rateconnect.NewClientInterceptor(transport)))
				do := calls(t, w, url)[kind]
				if err := do(nil); c.err == nil && err != nil || c.err != nil && connect.CodeOf(err) != connect.CodeOf(c.err) {
					t.Fatalf("%s, %s, %s: the first call: %v, want %v", name, w.name, kind, err, c.err)
				}
				if got := time.Duration(held.Load()); got != c.held {
					t.Errorf("%s, %s, %s: held for %v, want %v", name, w.name, kind, got, c.held)
				}
				err := do(nil)
				var limited *runtime.LimitedError
				if refused := c.held > 0 || c.max == 1; errors.As(err, &limited) != refused ||
					refused && (limited.Blocked != (c.held > 0) || connect.CodeOf(err) != connect.CodeResourceExhausted || details(t, err)["google.rpc.RetryInfo"] == nil) {
					t.Errorf("%s, %s, %s: the next call: %v, %v", name, w.name, kind, err, details(t, err))
				}
			}
		}
	}
}
