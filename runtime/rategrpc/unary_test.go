package rategrpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/raterpc"
)

// What a client gets of an admitted call and of one that is refused.
func TestExchange(t *testing.T) {
	client := dial(t, serving(limitedBy(limiter(t), rule(1, time.Hour))), options())

	first := call(t, client)
	if first.status.Code() != codes.OK || len(first.trailer) != 0 || !cmp.Equal(first.header.Get("ratelimit"), []string{`"Orders.Get";r=0;t=3600`}) ||
		!cmp.Equal(first.header.Get("ratelimit-policy"), []string{`"Orders.Get";q=1;w=3600`}) {
		t.Errorf("%+v", first)
	}

	refused := call(t, client)
	if refused.status.Code() != codes.ResourceExhausted || refused.status.Message() != "too fast, have a cup of tea" {
		t.Error(refused.status)
	}
	if d := detail[*errdetails.RetryInfo](refused.status).GetRetryDelay().AsDuration(); d <= 50*time.Minute || d > time.Hour {
		t.Errorf("retry delay %v", d)
	}
	info := &errdetails.ErrorInfo{Reason: "RATE_LIMIT_EXCEEDED", Domain: "grpc.testing.TestService", Metadata: map[string]string{"policy": "Orders.Get", "limit": "1", "retry_after": "3600"}}
	limittest.Same(t, "ErrorInfo", info, detail[*errdetails.ErrorInfo](refused.status), protocmp.Transform())
	if detail[*errdetails.QuotaFailure](refused.status) == nil || len(refused.header) != 0 ||
		len(refused.trailer.Get("ratelimit")) != 1 || len(refused.trailer.Get("ratelimit-policy")) != 1 || len(refused.trailer.Get("grpc-retry-pushback-ms")) != 0 {
		t.Errorf("%+v", refused)
	}
}

// Interceptors further out get a panic of a handler, see the status and the error that it was made of. A chain may have the
// interceptor without its options.
func TestOuterInterceptor(t *testing.T) {
	var seen error
	outer := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if value := recover(); value != nil {
				err = status.Error(codes.Aborted, fmt.Sprint(value))
			}
		}()
		resp, seen = handler(ctx, req)
		return resp, seen
	}
	for want, do := range map[codes.Code]func(context.Context) error{
		codes.Aborted: func(context.Context) error { panic("oh") },
		codes.ResourceExhausted: func(context.Context) error {
			return &runtime.LimitedError{Rule: "shop.Orders.Get", Limit: 1, RetryAfter: time.Second}
		},
	} {
		client := dial(t, serving(do), []grpc.ServerOption{grpc.ChainUnaryInterceptor(outer, rategrpc.UnaryServerInterceptor())})
		limittest.Equal(t, "code", call(t, client).status.Code(), want)
	}
	if !errors.Is(seen, runtime.ErrLimited) || status.Code(seen) != codes.ResourceExhausted || seen.Error() != "rpc error: code = ResourceExhausted desc = rate limit exceeded" {
		t.Error(seen)
	}
}

// A limit on calls in flight gets its permit back when a call ends.
func TestLimitInFlight(t *testing.T) {
	rule := &runtime.Rule{Name: "flight", Window: time.Hour, Max: 1, Algorithm: runtime.Concurrency, Fail: runtime.FailClosed}
	client := dial(t, serving(succeed), options(raterpc.WithLimits(limiter(t), raterpc.MethodLimit{Method: "*", Rule: rule})))
	for range 3 {
		for _, do := range calls(client) {
			limittest.OK(t, do(t.Context()))
		}
	}
}
