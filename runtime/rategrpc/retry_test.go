package rategrpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

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
	client := dial(t, serving(func(ctx context.Context) error {
		attempts.Add(1)
		return inner(ctx)
	}), options(raterpc.WithPushback(time.Minute)), grpc.WithDefaultServiceConfig(policy))

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
