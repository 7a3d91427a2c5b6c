package ratetest_test

import (
	"fmt"
	"io"
	goruntime "runtime"
	"strings"
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

// failuresOf runs a test to its end and returns its failures.
func failuresOf(test func(t testing.TB)) []string {
	f := new(fake)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, c := range f.cleanups {
				c()
			}
		}()
		test(f)
	}()
	<-done
	return f.failures
}

// wantFailures reports failures that are not as wanted: as many, each with the texts
// that a line of want has, separated by " … ".
func wantFailures(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		rest := got[i]
		for part := range strings.SplitSeq(want[i], " … ") {
			_, after, found := strings.Cut(rest, part)
			ok = ok && found
			rest = after
		}
	}
	if !ok {
		t.Errorf("failures:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
