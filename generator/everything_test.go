package generator_test

import (
	"path/filepath"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/wrapall"
)

// TestEveryInterface wraps what there is to wrap in some packages, and with
// RATEGEN_TEST_FULL=1 in the whole standard library and the modules that this
// one needs anyway. examples/grpc does the same for gRPC.
func TestEveryInterface(t *testing.T) {
	if testing.Short() {
		t.Skip("checks the types of much code")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	packages := []string{"context", "io", "io/fs", "net", "net/http", "reflect", "github.com/redis/go-redis/v9"}
	if effort.Full() {
		packages = []string{"std", "github.com/redis/go-redis/v9/...", "golang.org/x/tools/..."}
	}
	wrapall.Test(t, root, root, packages...)
}
