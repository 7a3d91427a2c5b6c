// Package trial lets commands use servers and faults that are made for tests.
package trial

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// A Trial is what the servers and faults, which are made for tests, take for
// one: it holds what is to be cleaned up, and ends early if something fails.
type Trial struct {
	testing.TB // for the methods that nobody calls

	mu       sync.Mutex
	cleanups []func()
	failed   bool
}

// Run runs f in a trial, cleans up after it, and reports whether nothing
// failed.
func Run(f func(*Trial)) bool {
	t := Start(f)
	t.End()
	return !t.failed
}

// Start runs f in a trial, which is to be ended.
func Start(f func(*Trial)) *Trial {
	t := new(Trial)
	done := make(chan struct{})
	go func() { // which ends early if something fails
		defer close(done)
		f(t)
	}()
	<-done
	return t
}

// End cleans up.
func (t *Trial) End() {
	t.mu.Lock()
	cleanups := slices.Clone(t.cleanups)
	t.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
}

func (t *Trial) Helper() {}

func (t *Trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *Trial) TempDir() string {
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatalf("a directory for a server: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (t *Trial) Errorf(format string, args ...any) {
	t.mu.Lock()
	t.failed = true
	t.mu.Unlock()
	fmt.Fprintf(os.Stderr, filepath.Base(os.Args[0])+": "+format+"\n", args...)
}

func (t *Trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Skip is what a server that is not installed asks for.
func (t *Trial) Skip(args ...any) { t.Fatalf("%s", fmt.Sprint(args...)) }
