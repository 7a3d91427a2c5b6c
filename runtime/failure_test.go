package runtime_test

import (
	"github.com/rategen/rategen/runtime"
)

// withoutStore returns limiters whose stores decide nothing.
func withoutStore(opts ...runtime.Option) map[string]*runtime.Limiter {
	opts = append([]runtime.Option{quiet}, opts...)
	return map[string]*runtime.Limiter{"broken store": runtime.New(broken(), opts...), "no store": runtime.New(nil, opts...)}
}
