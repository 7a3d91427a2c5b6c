package runtime_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/rategen/rategen/runtime"
)

// A limiter in memory says so once where it is known to have replicas.
func TestMemoryStoreOfReplicas(t *testing.T) {
	for _, c := range []struct {
		store      runtime.Store
		replicas   int
		env, value string
		warns      bool
	}{
		{runtime.NewMemoryStore(), 1, "", "", false},
		{runtime.NewMemoryStore(), 3, "", "", true},
		{runtime.NewMemoryStore(), 1, "CF_INSTANCE_INDEX", "0", false},
		{runtime.NewMemoryStore(), 1, "CF_INSTANCE_INDEX", "1", true},
		{runtime.NewMemoryStore(), 1, "NOMAD_ALLOC_INDEX", "2", true},
		{runtime.NewMemoryStore(), 1, "NOMAD_ALLOC_INDEX", "-1", false},
		{runtime.NewMemoryStore(), 1, "DYNO", "web.1", false},
		{runtime.NewMemoryStore(), 1, "DYNO", "web.12", true},
		{runtime.NewMemoryStore(), 1, "DYNO", "run.9157", false},
		{&brokenStore{}, 3, "CF_INSTANCE_INDEX", "1", false},
	} {
		for _, env := range []string{"CF_INSTANCE_INDEX", "NOMAD_ALLOC_INDEX", "DYNO"} {
			t.Setenv(env, "")
		}
		if c.env != "" {
			t.Setenv(c.env, c.value)
		}
		var log bytes.Buffer
		runtime.New(c.store, runtime.WithReplicas(c.replicas), runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if lines := strings.Count(log.String(), "code=memory_store_replicas"); lines > 1 || (lines == 1) != c.warns {
			t.Errorf("%T, %d replicas, %s=%s: %q", c.store, c.replicas, c.env, c.value, log.String())
		}
	}
}
