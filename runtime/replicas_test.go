package runtime_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime"
)

// A limiter in memory says so once where it is told of replicas.
func TestMemoryStoreOfReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		store    runtime.Store
		replicas int
		warns    int
	}{
		{runtime.NewMemoryStore(), 1, 0},
		{runtime.NewMemoryStore(), 3, 1},
		{&brokenStore{}, 3, 0},
	} {
		var log bytes.Buffer
		runtime.New(c.store, runtime.WithReplicas(c.replicas), runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if lines := strings.Count(log.String(), "code=memory_store_replicas"); lines != c.warns {
			t.Errorf("%T, %d replicas: %q", c.store, c.replicas, log.String())
		}
	}
}
