package adaptive_test

import (
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime/adaptive"
)

// TestCgroupLimits reads the limits of machines, which are folders of an archive.
func TestCgroupLimits(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/cgroups.txtar")
	limittest.OK(t, err)
	machines, err := txtar.FS(archive)
	limittest.OK(t, err)
	folders, err := fs.ReadDir(machines, ".")
	limittest.OK(t, err)
	for _, folder := range folders {
		machine, err := fs.Sub(machines, folder.Name())
		limittest.OK(t, err)
		cpus, memory, err := adaptive.Limits(machine)
		limittest.OK(t, err)
		var name string
		var wantCPUs float64
		var wantMemory uint64
		_, err = fmt.Sscan(folder.Name(), &name, &wantCPUs, &wantMemory)
		limittest.OK(t, err)
		if cpus != wantCPUs || memory != wantMemory {
			t.Errorf("%s: %v processors and %d bytes", folder.Name(), cpus, memory)
		}
	}
}
