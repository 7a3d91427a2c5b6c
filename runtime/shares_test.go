package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
)

// TestShareNames has shares of every length, each of which is one of its own and leaves the key as it is.
func TestShareNames(t *testing.T) {
	t.Parallel()
	l := inMemory()
	bucket := &runtime.Rule{Name: "bucket", Window: time.Second, Max: 10, Algorithm: runtime.TokenBucket, Headroom: 2, Invalid: runtime.InvalidRefuse}
	for n := range 300 {
		limit := bucket.Limit(key("key")).WithShare(key(fmt.Sprintf("%0*d", n+1, 7)), 1)
		equal(t, "the key", limit.Key.String(), "key")
		taken(t, l, limit)
		ok(t, l.Reset(t.Context(), limit))
	}
	refusedAs(t, l, runtime.ErrInvalidKey, bucket.Limit(nil).WithShare(runtime.NewKey().AddInvalid("no tenant"), 1))
}
