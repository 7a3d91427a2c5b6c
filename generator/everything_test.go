package generator_test

import (
	"path/filepath"
	"testing"

	"github.com/rategen/rategen/internal/wrapall"
)

// TestEveryInterface wraps what there is to wrap in the standard library and
// in the modules that this one needs anyway. bench/generate does the same for
// gRPC.
func TestEveryInterface(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the whole standard library")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	wrapall.Test(t, root, root, "std", "github.com/redis/go-redis/v9/...", "golang.org/x/tools/...")
}
