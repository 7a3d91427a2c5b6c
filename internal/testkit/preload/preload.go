// Package preload has programs that a test starts call functions of a library in place of the
// system's.
package preload

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Library compiles a library of C, and has programs that are started from now on, until the test
// ends, call its functions. It skips the test where that is not possible. The test must not be parallel.
func Library(t *testing.T, source string) {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("functions of the system are replaced on Linux, with a C compiler")
	}
	library := filepath.Join(t.TempDir(), "library.so")
	compile := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", library, "-ldl")
	compile.Stdin = strings.NewReader(source)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Skipf("compile: %v\n%s", err, out)
	}
	t.Setenv("LD_PRELOAD", library)
}
