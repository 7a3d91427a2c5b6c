package rategrpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterpc"
)

// policy is a client's retry policy whose own backoff is too short to be of use, so
// that a call which succeeds has waited as it was told.
const policy = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
	"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`

// A client with a retry policy waits as long as the server says, and then is served.
func TestRetry(t *testing.T) {
	var attempts atomic.Int64
	inner := limitedBy(limiter(t), rule(1, 400*time.Millisecond))
	client := dial(t, &service{unary: func(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		attempts.Add(1)
		return inner(ctx, req)
	}}, options(raterpc.WithPushback(time.Minute)), grpc.WithDefaultServiceConfig(policy))

	const most = 20
	for range most { // a slow machine may need none
		attempts.Store(0)
		if a := call(t, client); a.status.Code() != codes.OK {
			t.Fatalf("%v after %d attempts", a.status, attempts.Load())
		}
		n := attempts.Load()
		if n == 2 {
			return
		}
		if n > 2 {
			t.Fatalf("%d attempts", n)
		}
	}
	t.Errorf("no retry in %d calls", most)
}

// A client does not retry where the server says that it is of no use, and cannot if
// the handler has set headers.
func TestNoRetry(t *testing.T) {
	pushback := raterpc.WithPushback(time.Minute)
	for _, test := range []struct {
		name     string
		rule     *runtime.Rule
		opts     []raterpc.Option
		header   bool          // the handler sets one
		timeout  time.Duration // of the call
		attempts int64
	}{
		{name: "told nothing", rule: rule(1, time.Hour), attempts: 3},
		{name: "told nothing, headers apart", rule: rule(1, time.Hour), header: true, attempts: 1},
		{name: "too long", rule: rule(1, time.Hour), opts: []raterpc.Option{pushback}, attempts: 1},
		{name: "never", rule: rule(0, time.Second), opts: []raterpc.Option{pushback}, attempts: 1},
		{name: "after the deadline", rule: rule(1, 50*time.Minute), timeout: 30 * time.Second, opts: []raterpc.Option{raterpc.WithPushback(time.Hour)}, attempts: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int64
			inner := limitedBy(limiter(t), test.rule)
			client := dial(t, &service{unary: func(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
				attempts.Add(1)
				if test.header {
					if err := grpc.SetHeader(ctx, metadata.Pairs("request-id", "1")); err != nil {
						t.Error(err)
					}
				}
				return inner(ctx, req)
			}}, options(test.opts...), grpc.WithDefaultServiceConfig(policy))

			call(t, client)
			attempts.Store(0)
			ctx := t.Context()
			if test.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.timeout)
				defer cancel()
			}
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{})
			if status.Code(err) != codes.ResourceExhausted || attempts.Load() != test.attempts {
				t.Errorf("%v after %d attempts", err, attempts.Load())
			}
		})
	}
}
