// Package powercut makes files what they are after a power cut: as long as they were when
// their program last synced them. Killing a program does not do that, since the system still
// writes what the program has written.
package powercut

import (
	_ "embed"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/preload"
)

//go:embed synced.c.txt
var source string

// Watch has programs that are started from now on, until the test ends, note what they have
// synced. It skips the test where that is not possible. The test must not be parallel.
func Watch(t *testing.T) {
	t.Helper()
	preload.Library(t, source)
}

// Cut cuts the files below a directory whose names end with a suffix. Their program has to be
// dead. It returns how many bytes are gone.
func Cut(t *testing.T, dir, suffix string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		text, err := os.ReadFile(path + ".synced")
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		size, _ := strconv.ParseInt(string(text), 10, 64) // without one nothing was synced
		info, err := entry.Info()
		if err != nil {
			return err
		}
		bytes += info.Size() - size
		return os.Truncate(path, size)
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
