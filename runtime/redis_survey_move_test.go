package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestSurveyWithoutPrefix heals nothing for a group that stands for every key of
// the database.
func TestSurveyWithoutPrefix(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	client.Set(ctx, "mine", 1, 0)
	store := runtime.NewRedisStore(client, patient)
	everything := runtime.New(store, quiet).KeysOf(&runtime.Rule{Window: time.Hour, Max: 1})
	if err := store.Survey(ctx, everything); err == nil || client.TTL(ctx, "mine").Val() != -1 {
		t.Errorf("got %v; the key lives for %v", err, client.TTL(ctx, "mine").Val())
	}
	everything.Expiry = 0
	if err := store.Survey(ctx, everything); err != nil || everything.Keys != 1 || everything.Endless != 1 {
		t.Errorf("got %+v, %v", everything, err)
	}
}

// A mover is a hook with which keys have moved to another server for some
// commands of a survey.
type mover struct{ replies map[string]error }

func (mover) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (mover) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (m mover) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if reply := m.replies[fmt.Sprint(cmd.Name(), cmd.Args()[1:])]; reply != nil {
				cmd.SetErr(reply)
				if healed, ok := cmd.(*redis.BoolCmd); ok {
					healed.SetVal(false)
				}
				err = reply
			}
		}
		return err
	}
}

// TestSurveyOfMovingKeys goes on when keys move to another server of a cluster
// between being listed and being looked at, or healed.
func TestSurveyOfMovingKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	for i := range 5 {
		client.Set(ctx, fmt.Sprint("k:", i), 1, 0)
	}
	moved := reply("MOVED 1 127.0.0.1:1")
	client.AddHook(mover{map[string]error{
		"pttl[k:0]": moved, "memory[usage k:1]": reply("ASK 1 127.0.0.1:1"), fmt.Sprint("pexpire[k:2 ", 3600*1000, "]"): moved,
	}})
	g := &runtime.KeyGroup{Prefix: "k:", Expiry: time.Hour}
	err := runtime.NewRedisStore(client, patient).Survey(ctx, g)
	if err != nil || g.Keys != 3 || g.Endless != 3 || g.Healed != 2 {
		t.Errorf("got %+v, %v", g, err)
	}
}
