package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime"
)

// withoutStore returns limiters whose stores decide nothing.
func withoutStore(opts ...runtime.Option) map[string]*runtime.Limiter {
	opts = append([]runtime.Option{quiet}, opts...)
	return map[string]*runtime.Limiter{"broken store": runtime.New(broken(), opts...), "no store": runtime.New(nil, opts...)}
}

// A limiter in memory says so once where it is told of replicas.
func TestMemoryStoreOfReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		store          runtime.Store
		replicas, want int
	}{{runtime.NewMemoryStore(), 1, 0}, {runtime.NewMemoryStore(), 3, 1}, {broken(), 3, 0}} {
		var out lines
		runtime.New(c.store, runtime.WithReplicas(c.replicas), out.Logger())
		equal(t, fmt.Sprintf("%T, %d replicas: lines", c.store, c.replicas), strings.Count(out.String(), "code=memory_store_replicas"), c.want)
	}
}
