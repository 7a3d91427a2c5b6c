package findings

import (
	"path"
	"runtime"
	"strings"
)

// CalledByWrapper reports whether the generated method that has called the limiter was itself
// called by that method: its wrapper is within another one. The limiter does not see what a
// constructor wraps.
func CalledByWrapper() bool {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.Contains(path.Base(frame.File), "_ratelimit") { // is generated
			caller, _ := frames.Next()
			return caller.Function == frame.Function
		}
		if !more {
			return false
		}
	}
}
