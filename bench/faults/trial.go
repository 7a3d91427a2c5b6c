package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// A trial is what the servers and faults, which are made for tests, take for
// one: it holds what is to be cleaned up, and ends early if something fails.
type trial struct {
	testing.TB // for the methods that nobody calls

	mu       sync.Mutex
	cleanups []func()
	dirs     []string
	failed   bool
}

// attempt runs f in a trial, cleans up after it, and reports whether nothing
// failed.
func attempt(f func(*trial)) bool {
	t := new(trial)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.cleanup()
		f(t)
	}()
	<-done
	return !t.failed
}

func (t *trial) cleanup() {
	t.mu.Lock()
	cleanups, dirs := slices.Clone(t.cleanups), t.dirs
	t.mu.Unlock()
	for _, f := range slices.Backward(cleanups) {
		f()
	}
	for _, dir := range dirs {
		_ = os.RemoveAll(dir)
	}
}

func (t *trial) Helper() {}

func (t *trial) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

func (t *trial) TempDir() string {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		t.Fatalf("a directory for a server: %v", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirs = append(t.dirs, dir)
	return dir
}

func (t *trial) Errorf(format string, args ...any) {
	t.mu.Lock()
	t.failed = true
	t.mu.Unlock()
	fmt.Fprintf(os.Stderr, "faults: "+format+"\n", args...)
}

func (t *trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

// Skip is what a server that is not installed asks for.
func (t *trial) Skip(args ...any) { t.Fatalf("%s", fmt.Sprint(args...)) }
