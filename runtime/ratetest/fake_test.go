package ratetest_test

import (
	"fmt"
	"io"
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/rategen/rategen/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// A fake is a test whose failures are collected.
type fake struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	skipped  bool
	cleanups []func()
}

func (f *fake) Helper()           {}
func (f *fake) Output() io.Writer { return io.Discard }
func (f *fake) Cleanup(c func())  { f.cleanups = append(f.cleanups, c) }
func (f *fake) Skipped() bool     { return f.skipped }

func (f *fake) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.failures) > 0
}

func (f *fake) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

func (f *fake) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	goruntime.Goexit()
}
