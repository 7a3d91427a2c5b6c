package raterueidis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestSettings refuses settings with which limits would not hold, by their names.
func TestSettings(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr
	onlyReads := func(c rueidis.Completed) bool { return c.IsReadOnly() }
	for _, test := range []struct {
		name   string
		change func(*rueidis.ClientOption)
	}{
		{"", func(*rueidis.ClientOption) {}},
		{"", func(o *rueidis.ClientOption) { o.SendToReplicas = onlyReads }},
		{"", func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }},
		{"", func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true }},
		{"", func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }},
		{"ConnLifetime", func(o *rueidis.ClientOption) { o.ConnLifetime = time.Hour }},
		{"ReplicaOnly", func(o *rueidis.ClientOption) { o.ReplicaOnly = true }},
		{"SendToReplicas", func(o *rueidis.ClientOption) { o.SendToReplicas = func(rueidis.Completed) bool { return true } }},
	} {
		option := rueidis.ClientOption{InitAddress: []string{addr}}
		made := option
		test.change(&option)
		if test.name == "" {
			made = option
		}
		client := dial(t, &made)
		defer client.Close()
		store, err := NewStore(client, option, runtime.WithTimeout(10*time.Second))
		if test.name != "" {
			if err == nil || !strings.Contains(err.Error(), test.name) {
				t.Errorf("%s: got %v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		limiter := runtime.New(store, runtime.WithFailurePolicy(runtime.FailClosed))
		limit := (&runtime.Rule{Prefix: "settings:", Window: time.Hour, Max: 100}).Limit(nil)
		if _, err := limiter.Take(context.Background(), limit); err != nil {
			t.Error(err)
		}
		if err := errors.Join(limiter.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	}
}
