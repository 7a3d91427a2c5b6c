package contest

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/bench/internal/limiters"
	"github.com/rategen/rategen/bench/internal/load"
)

// TestSpread wants each key to get its events, all from the limiter with its
// limits.
func TestSpread(t *testing.T) {
	asked := make([]map[string]int, len(Fillings))
	fillers := make([]load.Take, len(Fillings))
	for j := range Fillings {
		asked[j] = map[string]int{}
		fillers[j] = func(_ context.Context, key string) load.Answer {
			asked[j][key]++
			return load.Admitted
		}
	}
	if err := spread(t.Context(), 10*time.Millisecond, 7, fillers); err != nil {
		t.Fatal(err)
	}
	for j, f := range Fillings {
		if n := asked[j][sizeKey(7, j)]; len(asked[j]) != 1 || n != f.Events {
			t.Errorf("%v: %v", f, asked[j])
		}
	}
	fillers[1] = func(context.Context, string) load.Answer { return load.Denied }
	if spread(t.Context(), 10*time.Millisecond, 7, fillers) == nil {
		t.Error("a call that was not admitted is an event")
	}
}

func TestFillingString(t *testing.T) {
	if got, want := (Filling{10_000, limiters.Long}).String(), "10,000 events, max=20,000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, f := range Fillings {
		if f.Limits.Level != f.Limits.Log || int64(f.Events) > f.Limits.Log.Max {
			t.Errorf("%v: the limits are %+v", f, f.Limits)
		}
	}
}
