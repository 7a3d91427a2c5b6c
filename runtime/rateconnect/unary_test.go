package rateconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateconnect"
	"github.com/rategen/rategen/runtime/raterpc"
)

// What a client gets of an admitted call and of one that is refused, in every
// protocol.
func TestExchange(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			c := client(t, w, serve(t, serving(limitedBy(limiter(t), rule(1)))), unary)
			resp, err := c.CallUnary(t.Context(), connect.NewRequest(&text{}))
			limittest.OK(t, err)
			if got := []string{resp.Header().Get("RateLimit"), resp.Header().Get("RateLimit-Policy")}; !cmp.Equal(got, []string{`"Orders.Get";r=0;t=3600`, `"Orders.Get";q=1;w=3600`}) {
				t.Errorf("fields %q", got)
			}

			_, err = c.CallUnary(t.Context(), connect.NewRequest(&text{}))
			if connect.CodeOf(err) != connect.CodeResourceExhausted || err.Error() != "resource_exhausted: too fast, have a cup of tea" {
				t.Fatal(err)
			}
			found := details(t, err)
			retry, _ := found["google.rpc.RetryInfo"].(*errdetails.RetryInfo)
			if after := retry.GetRetryDelay().AsDuration(); meta(err).Get("Retry-After") != "3600" || after <= 3599*time.Second || after > time.Hour || found["google.rpc.QuotaFailure"] == nil ||
				meta(err).Get("RateLimit-Policy") != `"Orders.Get";q=1;w=3600` || !strings.HasPrefix(meta(err).Get("RateLimit"), `"Orders.Get";r=0;t=3`) {
				t.Errorf("fields %v, details %v", meta(err), found)
			}
			info := &errdetails.ErrorInfo{Reason: "RATE_LIMIT_EXCEEDED", Domain: "shop.v1.Orders", Metadata: map[string]string{"policy": "Orders.Get", "limit": "1", "retry_after": "3600"}}
			limittest.Same[any](t, "ErrorInfo", info, found["google.rpc.ErrorInfo"], protocmp.Transform())
		})
	}
}

// However a handler ends, the client gets the code that fits.
func TestCode(t *testing.T) {
	limited := &runtime.LimitedError{Rule: "shop.Orders.Get", Limit: 1, RetryAfter: time.Second}
	never := &runtime.LimitedError{Rule: "shop.Orders.Get", RetryAfter: runtime.Never}
	own := connect.NewError(connect.CodeResourceExhausted, errors.New("the application's own"))
	for _, test := range []struct {
		name       string
		err        error
		want       string
		details    int
		retryAfter string
	}{
		{"limited", fmt.Errorf("find order: %w", limited), "resource_exhausted: rate limit exceeded", 3, "1"},
		{"never", never, "resource_exhausted: rate limit exceeded", 2, ""},
		{"unavailable", fmt.Errorf("%w: dial tcp 10.1.2.3:6379", runtime.ErrUnavailable), "unavailable: rate limiter unavailable", 1, ""},
		{"invalid key", runtime.ErrInvalidKey, "internal: rate limit could not be applied", 1, ""},
		{"own error", own, "resource_exhausted: the application's own", 0, ""},
		{"own error around a refusal", connect.NewError(connect.CodeAborted, limited), "aborted: rate limit exceeded", 0, ""},
		{"cancelled", context.Canceled, "canceled: context canceled", 0, ""},
		{"another error", errors.New("no order"), "unknown: no order", 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, w := range ways {
				_, err := client(t, w, serve(t, serving(returns(test.err))), unary).CallUnary(t.Context(), connect.NewRequest(&text{}))
				if err == nil || err.Error() != test.want || len(details(t, err)) != test.details || meta(err).Get("Retry-After") != test.retryAfter {
					t.Errorf("%s: %v with %d details, %v", w.name, err, len(details(t, err)), meta(err))
				}
			}
		})
	}
}

// A client of grpc-go reads status, details and fields. It does not retry.
func TestGRPC(t *testing.T) {
	attempts := 0
	inner := limitedBy(limiter(t), rule(1))
	url := serve(t, serving(func(ctx context.Context) error {
		attempts++
		return inner(ctx)
	}), raterpc.WithPushback(time.Minute))
	conn, err := grpc.Dial(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
	limittest.OK(t, err)
	defer conn.Close()
	var header, trailer metadata.MD
	for range 2 {
		err = conn.Invoke(t.Context(), unary, &text{}, &text{}, grpc.Header(&header), grpc.Trailer(&trailer))
	}
	st := status.Convert(err)
	if st.Code() != codes.ResourceExhausted || st.Message() != "too fast, have a cup of tea" || len(st.Details()) != 3 {
		t.Errorf("%v with %v", err, st.Details())
	}
	if len(header.Get("ratelimit")) != 1 || len(trailer.Get("ratelimit")) != 0 || len(trailer.Get("retry-after")) != 1 {
		t.Errorf("headers %v, trailers %v", header, trailer)
	}
	if attempts != 2 {
		t.Errorf("%d attempts", attempts)
	}
}

// Interceptors further out see the code and the error it was made of, and a panic is
// theirs.
func TestOuterInterceptor(t *testing.T) {
	var seen error
	var recovered any
	outer := connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (resp connect.AnyResponse, err error) {
			defer func() {
				if recovered = recover(); recovered != nil {
					err = connect.NewError(connect.CodeAborted, errors.New("recovered"))
				}
			}()
			resp, seen = next(ctx, req)
			return resp, seen
		}
	}), rateconnect.NewInterceptor())
	for _, c := range []struct {
		do   func() error
		want connect.Code
	}{
		{func() error { return &runtime.LimitedError{Rule: "x", RetryAfter: time.Second} }, connect.CodeResourceExhausted},
		{func() error { panic("oh") }, connect.CodeAborted},
	} {
		server := httptest.NewServer(connect.NewUnaryHandler(unary, func(context.Context, *connect.Request[text]) (*connect.Response[text], error) { return nil, c.do() }, outer))
		_, err := client(t, ways[0], server.URL, unary).CallUnary(t.Context(), connect.NewRequest(&text{}))
		limittest.Equal(t, "code", connect.CodeOf(err), c.want)
		server.Close()
	}
	if !errors.Is(seen, runtime.ErrLimited) || recovered != "oh" {
		t.Errorf("saw %v, recovered %v", seen, recovered)
	}
}

// A limit on calls in flight gets its permit back when a call ends.
func TestLimitInFlight(t *testing.T) {
	flight := &runtime.Rule{Name: "flight", Window: time.Hour, Max: 1, Algorithm: runtime.Concurrency, Fail: runtime.FailClosed}
	url := serve(t, serving(returns(nil)), raterpc.WithLimits(limiter(t), raterpc.MethodLimit{Method: "*", Rule: flight}))
	for _, w := range ways {
		for range 3 {
			for _, do := range calls(t, w, url) {
				limittest.OK(t, do(nil))
			}
		}
	}
}
