// Package parallel runs loops on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/generator/internal/diag"
)

// Do calls do for 0 to n-1, as many at a time as there are processors.
// It returns when all calls have. It panics if one has, with a [diag.Panic].
func Do(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	var failed atomic.Pointer[diag.Panic]
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					failed.Store(diag.AsPanic(v))
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
	if p := failed.Load(); p != nil {
		panic(p)
	}
}
