//go:build unix

package override

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// To open a pipe that nobody writes to would never end.
func TestFilePipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "limits.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := look(File(path)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}
