// Package parallel runs loops on all processors.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls do for 0 to n-1, as many at a time as there are processors.
// It returns when all calls have.
func Do(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}
