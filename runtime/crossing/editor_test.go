package crossing

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// edit makes an edit at a time.
func (w *wire) edit(x edit, now time.Time) (err error) {
	x.Edit.Until = time.Time{}
	if x.For > 0 {
		x.Edit.Until = now.Add(x.For)
	}
	w.server.Outside(func() {
		w.server.shows = now
		_, err = override.NewEditor(w.server.hash, overridesKey).Edit(context.Background(), x.Edit)
	})
	return err
}

// overridesKey is the key of the hash with the overrides.
const overridesKey = "overrides"

// overridesSource returns a limiter's source.
func (w *wire) overridesSource() runtime.OverrideSource {
	return override.Redis(farHash{w.server.hash, w.server, w.clock}, overridesKey)
}

// A farHash reads a hash from outside of the bubble.
type farHash struct {
	redis.UniversalClient
	server *farServer
	clock  func() time.Time
}

func (h farHash) HLen(ctx context.Context, key string) (cmd *redis.IntCmd) {
	h.server.Outside(func() { cmd = h.UniversalClient.HLen(context.Background(), key) })
	return cmd
}

func (h farHash) HGetAll(ctx context.Context, key string) (cmd *redis.MapStringStringCmd) {
	h.server.Outside(func() { cmd = h.UniversalClient.HGetAll(context.Background(), key) })
	return cmd
}

func (h farHash) Time(context.Context) (cmd *redis.TimeCmd) {
	now := h.clock()
	h.server.Outside(func() {
		h.server.shows = now
		cmd = h.UniversalClient.Time(context.Background())
	})
	return cmd
}

// A clockHook has a server show the time of the bubble.
type clockHook struct{ now *time.Time }

func (h clockHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h clockHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if shown, is := cmd.(*redis.TimeCmd); is {
			shown.SetVal(*h.now)
		}
		return err
	}
}

func (h clockHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestEdits makes edits alone, as time passes, and wants limiters to read what they mean.
func TestEdits(t *testing.T) {
	try(t, effort.ChooseMore(100, effort.Few(400)), 5000)
	server := newFarServer(t)
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			p := &program{Rules: []*runtime.Rule{{Name: "rule0", Window: wireScope.window, Max: 10}}, Begins: wireBegin}
			w, means := newWire(p, server), edited{}
			source, text := w.overridesSource(), fmt.Sprintf("program %d:", programs.Add(1))
			for range rapid.IntRange(1, 8).Draw(t, "edits") {
				x := wireScope.drawEdit(t, p)
				now := w.clock()
				if err := w.edit(x, now); err != nil {
					t.Fatalf("%v: %v", x, err)
				}
				means.apply(x, now)
				text += fmt.Sprintf("\n  %v: %v", w.now(), x)
				for range 2 {
					got, err := source.Overrides(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(means.at(p, w.clock())[0], got.Rules["rule0"], cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("overrides are what edits have made of them: at %v (-want +got):\n%s\n%s", w.now(), diff, text)
					}
					time.Sleep(wireScope.window / 4 * time.Duration(rapid.IntRange(0, 5).Draw(t, "later")))
				}
			}
		})
	})
}
