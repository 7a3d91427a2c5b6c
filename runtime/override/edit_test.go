package override

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestEdit edits a hash in the form of the page of limits.
func TestEdit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	editor := NewEditor(client, "limits")
	key := "acme:ann"
	for _, edit := range []struct {
		pattern *string
		change  *runtime.KeyOverride
	}{
		{nil, &runtime.KeyOverride{Max: new(int64(7))}},
		{nil, &runtime.KeyOverride{Mode: new(runtime.Shadow)}},
		{&key, &runtime.KeyOverride{Max: new(int64(0))}},
		{new("gone"), &runtime.KeyOverride{Max: new(int64(0))}},
		{new("gone"), nil},
		{new("never there"), nil},
	} {
		if err := editor.Edit(ctx, "r", edit.pattern, edit.change); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := editor.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{Target{Rule: "r"}, Change{KeyOverride: runtime.KeyOverride{Max: new(int64(7)), Mode: new(runtime.Shadow)}}},
		{Target{"r", key, true}, Change{KeyOverride: runtime.KeyOverride{Max: new(int64(0))}}},
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Error(diff)
	}
	if err := editor.Edit(ctx, All, nil, nil); err == nil {
		t.Error("a rule of the name * stands for all limits")
	}
	ends := Change{KeyOverride: runtime.KeyOverride{Max: new(int64(1))}, Until: time.Now().Add(time.Hour)}
	if _, _, err := editor.Set(ctx, Target{Rule: "s"}, ends); err != nil {
		t.Fatal(err)
	}
	if err := editor.Edit(ctx, "s", nil, &runtime.KeyOverride{Mode: new(runtime.Shadow)}); !errors.Is(err, ErrConflict) {
		t.Errorf("a part of an override that ends: %v", err)
	}
}
