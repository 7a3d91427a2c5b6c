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

// However a handler ends, the client gets the status that fits.
func TestStatus(t *testing.T) {
	limited := &runtime.LimitedError{Rule: "shop.Orders.Get", Limit: 1, RetryAfter: time.Second}
	own := status.New(codes.ResourceExhausted, "the application's own")
	own, err := own.WithDetails(&errdetails.DebugInfo{Detail: "x"})
	limittest.OK(t, err)
	for _, test := range []struct {
		name    string
		err     error
		code    codes.Code
		message string
		details int
	}{
		{"limited", limited, codes.ResourceExhausted, "rate limit exceeded", 3},
		{"wrapped", fmt.Errorf("find order: %w", limited), codes.ResourceExhausted, "rate limit exceeded", 3},
		{"never", &runtime.LimitedError{RetryAfter: runtime.Never}, codes.ResourceExhausted, "rate limit exceeded", 2},
		{"unavailable", fmt.Errorf("%w: dial tcp 10.1.2.3:6379: refused", runtime.ErrUnavailable), codes.Unavailable, "rate limiter unavailable", 1},
		{"invalid key", fmt.Errorf("rule %q: %w", "shop.Orders.Get", runtime.ErrInvalidKey), codes.Internal, "rate limit could not be applied", 1},
		{"own status", own.Err(), codes.ResourceExhausted, "the application's own", 1},
		{"own status, wrapped", fmt.Errorf("x: %w", status.Error(codes.NotFound, "no order")), codes.NotFound, "x: rpc error: code = NotFound desc = no order", 0},
		{"own status around a refusal", coded{limited}, codes.AlreadyExists, "coded", 0},
		{"cancelled", context.Canceled, codes.Canceled, "context canceled", 0},
		{"deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), codes.DeadlineExceeded, "query: context deadline exceeded", 0},
		{"another error", errors.New("no order"), codes.Unknown, "no order", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := dial(t, &service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return nil, test.err }}, options())
			got := call(t, client).status
			if got.Code() != test.code || got.Message() != test.message || len(got.Details()) != test.details {
				t.Errorf("%v with %d details", got, len(got.Details()))
			}
		})
	}
}

// A coded error has a status of its own.
type coded struct{ error }

func (coded) GRPCStatus() *status.Status { return status.New(codes.AlreadyExists, "coded") }
func (c coded) Unwrap() error            { return c.error }

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
