// Package steppedclock sets the clock of real servers forward and back.
package steppedclock

import (
	_ "embed"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/preload"
)

//go:embed clock.c.txt
var source string

// A Clock is what servers show that were started after it, until its test ends.
type Clock struct {
	t      testing.TB
	file   *os.File
	mu     sync.Mutex
	offset time.Duration
}

// New returns a clock that shows the time. It skips the test where servers cannot have one of their
// own. The test must not be parallel.
func New(t *testing.T) *Clock {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "offset"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	c := &Clock{t: t, file: file}
	c.Set(0)
	preload.Library(t, source)
	t.Setenv("TEST_CLOCK_OFFSET", file.Name())
	return c
}

// Set sets the clock to an offset from the time.
func (c *Clock) Set(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(offset)
}

// Step sets the clock forward, or back.
func (c *Clock) Step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(c.offset + by)
}

func (c *Clock) write(offset time.Duration) {
	c.offset = offset
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(offset)), 0); err != nil {
		c.t.Error(err)
	}
}
