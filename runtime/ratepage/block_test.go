package ratepage

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// An inForce is an editor of overrides that a limiter follows.
type inForce struct {
	notebook
	says chan runtime.Overrides
}

func (f *inForce) Edit(_ ctx, e override.Edit) (override.Edited, error) {
	is := override.Change{Values: override.Values{KeyOverride: e.Set, Block: e.Block, Allow: e.Allow}}.At(time.Now())
	f.says <- runtime.Overrides{Rules: map[string]rule.Override{e.Rule: {Keys: map[string]rule.KeyOverride{e.Pattern: is}}}}
	return override.Edited{Found: true}, nil
}

// TestBlockInShadow blocks a key of a rule that refuses nobody else.
func TestBlockInShadow(t *testing.T) {
	t.Parallel()
	edits := &inForce{says: make(chan runtime.Overrides, 1)}
	page := New(WithLogger(quiet), WithActions(func(*http.Request, Action) (string, error) { return "ada", nil }, edits))
	rule := &runtime.Rule{Name: "r", Max: 1, Window: time.Hour, Mode: runtime.ModeShadow}
	newLimiter(t, page, rule)
	if status, answer := post(page, `{"action":"block","rule":"r","key":"mallory"}`); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	says, told := <-edits.says, make(chan error, 1)
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(quiet),
		runtime.WithOverrides(runtime.OverrideFunc(func(ctx) (runtime.Overrides, error) { return says, nil }), time.Hour),
		runtime.WithObserver(&observe.Observer{Override: func(ev observe.OverrideEvent) { told <- ev.Err }}))
	defer limiter.Close()
	limittest.OK(t, <-told)
	take := func(key string) error {
		_, err := limiter.Take(t.Context(), rule.Limit(runtime.NewKey().AddString(key)))
		return err
	}
	if err := take("mallory"); !errors.Is(err, runtime.ErrLimited) {
		t.Errorf("the blocked key: %v", err)
	}
	for range 3 {
		if err := take("ada"); err != nil {
			t.Errorf("another key: %v", err)
		}
	}
}
