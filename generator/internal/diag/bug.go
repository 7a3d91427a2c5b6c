package diag

import (
	"fmt"
	"go/token"
	"path"
	"runtime"
	"strings"
)

// pleaseReport ends the message about a bug.
const pleaseReport = "this is a bug of rategen, please report it with these lines at https://github.com/rategen/rategen/issues"

// Guard calls do, which works on what is at pos. A panic is reported there, and
// ends nothing else.
func (r *Reporter) Guard(pos token.Pos, do func()) {
	defer func() {
		if v := recover(); v != nil {
			r.At(pos, "%s", bug(v))
		}
	}()
	do()
}

// Recover, deferred, reports a panic that nothing more precise has caught, and
// then calls done. Where is the nearest place that is known.
func (r *Reporter) Recover(where token.Position, done func()) {
	if v := recover(); v != nil {
		where.Filename = r.Short(where.Filename)
		r.AtPosition(where, "%s", bug(v))
		done()
	}
}

// Unwritable reports that what is to be generated for a place cannot be.
func (r *Reporter) Unwritable(pos token.Pos, err error) {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	r.At(pos, "cannot write the wrapper: %s; %s", reason, pleaseReport)
}

func bug(v any) string {
	if p, ok := v.(*Panic); ok {
		return fmt.Sprintf("%v, in %s; %s", p.Value, p.Func, pleaseReport)
	}
	return fmt.Sprintf("%v, in %s; %s", v, culprit(), pleaseReport)
}

// A Panic is a panic of another goroutine.
type Panic struct {
	Value any
	Func  string // that panicked
}

// AsPanic returns a value that recover has returned as one to panic with in
// another goroutine.
func AsPanic(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p
	}
	return &Panic{v, culprit()}
}

// culprit returns the function of rategen that panics.
func culprit() string {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicked := false
	for {
		f, more := frames.Next()
		if f.Function == "runtime.gopanic" {
			panicked = true
		} else if panicked && strings.Contains(f.Function, "/rategen/") {
			return fmt.Sprintf("%s, line %d", path.Base(f.Function), f.Line)
		} else if !more {
			return "an unknown function"
		}
	}
}
