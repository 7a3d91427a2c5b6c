package runtime_test

import (
	"time"

	"github.com/rategen/rategen/runtime"
)

// capped returns a limiter with a cap of max a minute.
func capped(store runtime.Store, algorithm runtime.Algorithm, max int64, opts ...runtime.Option) *runtime.Limiter {
	rule := &runtime.Rule{Name: "process", Window: time.Minute, Max: max, Algorithm: algorithm, Message: "this process is busy"}
	return runtime.New(store, append(opts, quiet, runtime.WithProcessCap(rule))...)
}
