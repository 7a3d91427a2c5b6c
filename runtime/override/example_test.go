package override_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A file that operations may change lowers a limit.
func ExampleFile() {
	dir, _ := os.MkdirTemp("", "limits")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "limits.yaml")
	_ = os.WriteFile(path, []byte("rules:\n  export:\n    max: 2\n"), 0o600)

	exports := &runtime.Rule{Name: "export", Prefix: "export:", Window: time.Hour, Max: 10}
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithOverrides(override.File(path), 5*time.Second))
	defer limiter.Close()

	decision, _ := limiter.Take(context.Background(), exports.Limit(nil))
	fmt.Println(decision.Limit, decision.Remaining)
	// Output: 2 1
}
