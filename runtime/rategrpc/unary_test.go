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
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategrpc"
	"github.com/rategen/rategen/runtime/raterpc"
)

// What a client gets of an admitted call and of one that is refused.
func TestExchange(t *testing.T) {
	client := dial(t, &service{unary: limitedBy(limiter(t), rule(1, time.Hour))}, options())

	first := call(t, client)
	if first.status.Code() != codes.OK {
		t.Fatal(first.status)
	}
	if got := first.header.Get("ratelimit"); !cmp.Equal(got, []string{`"Orders.Get";r=0;t=3600`}) {
		t.Errorf("ratelimit %q", got)
	}
	if got := first.header.Get("ratelimit-policy"); !cmp.Equal(got, []string{`"Orders.Get";q=1;w=3600`}) {
		t.Errorf("ratelimit-policy %q", got)
	}
	if len(first.trailer) != 0 {
		t.Errorf("trailers %v", first.trailer)
	}

	refused := call(t, client)
	if refused.status.Code() != codes.ResourceExhausted || refused.status.Message() != "too fast, have a cup of tea" {
		t.Error(refused.status)
	}
	if d := detail[*errdetails.RetryInfo](refused.status).GetRetryDelay().AsDuration(); d <= 50*time.Minute || d > time.Hour {
		t.Errorf("retry delay %v", d)
	}
	want := &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
		{Subject: "Orders.Get", QuotaId: "Orders.Get", Description: runtime.DefaultMessage, QuotaValue: 1},
	}}
	limittest.Same(t, "QuotaFailure", want, detail[*errdetails.QuotaFailure](refused.status), protocmp.Transform())
	info := &errdetails.ErrorInfo{Reason: "RATE_LIMIT_EXCEEDED", Domain: "grpc.testing.TestService", Metadata: map[string]string{"policy": "Orders.Get", "limit": "1", "retry_after": "3600"}}
	limittest.Same(t, "ErrorInfo", info, detail[*errdetails.ErrorInfo](refused.status), protocmp.Transform())
	if len(refused.trailer.Get("ratelimit")) != 1 || len(refused.trailer.Get("ratelimit-policy")) != 1 || len(refused.trailer.Get("grpc-retry-pushback-ms")) != 0 {
		t.Errorf("trailers %v", refused.trailer)
	}
	if len(refused.header) != 0 {
		t.Errorf("headers apart from the trailers: %v", refused.header)
	}
}

// A panic in a handler reaches the interceptor that is there for it.
func TestPanic(t *testing.T) {
	recovery := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if value := recover(); value != nil {
				err = status.Error(codes.Aborted, fmt.Sprint(value))
			}
		}()
		return handler(ctx, req)
	}
	client := dial(t,
		&service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { panic("oh") }},
		[]grpc.ServerOption{grpc.ChainUnaryInterceptor(recovery, rategrpc.UnaryServerInterceptor())})
	if got := call(t, client).status; got.Code() != codes.Aborted || got.Message() != "oh" {
		t.Error(got)
	}
}

// Interceptors further out see the status and the error it was made of.
func TestOuterInterceptor(t *testing.T) {
	limited := &runtime.LimitedError{Rule: "shop.Orders.Get", Limit: 1, RetryAfter: time.Second}
	var seen error
	outer := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		seen = err
		return resp, err
	}
	client := dial(t,
		&service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return nil, limited }},
		append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(outer)}, options()...))
	call(t, client)
	if !errors.Is(seen, runtime.ErrLimited) || status.Code(seen) != codes.ResourceExhausted || seen.Error() != "rpc error: code = ResourceExhausted desc = rate limit exceeded" {
		t.Error(seen)
	}
}

// A limit on calls in flight gets its permit back when a call ends.
func TestLimitInFlight(t *testing.T) {
	rule := &runtime.Rule{Name: "flight", Window: time.Hour, Max: 1, Algorithm: runtime.Concurrency, Fail: runtime.FailClosed}
	client := dial(t,
		&service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return &pb.SimpleResponse{}, nil }},
		options(raterpc.WithLimits(limiter(t), raterpc.MethodLimit{Method: "*", Rule: rule})))
	for i := range 3 {
		if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}
