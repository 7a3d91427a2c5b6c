package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/faultproxy"
	"github.com/rategen/rategen/internal/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestLostReplies loses every reply to clients that have their connections
// already: each call has been executed exactly once, and none is again,
// although its client retries as it does by default. A command of such a
// client is there to show that.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*faultproxy.Proxy){
		"thrown away":       (*faultproxy.Proxy).DropReplies,
		"connection closed": (*faultproxy.Proxy).CutReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			server := redistest.Start(t)
			direct := server.Client(t)
			proxy := faultproxy.Start(t, server.Addr)
			// There is a connection left for every retry: a pool has ten and
			// more by default, and new ones could not be made.
			const connections, calls = 10, 3
			connect := func() *redis.Client {
				client := redis.NewClient(&redis.Options{
					Addr:        proxy.Addr,
					ReadTimeout: 200 * time.Millisecond, // so that it retries soon
				})
				t.Cleanup(func() { _ = client.Close() })
				warm(t, client, connections)
				return client
			}
			client, control := connect(), connect()
			limit := (&runtime.Rule{Window: time.Hour, Max: 1000}).Limit(key("k"))
			take := func() error {
				// A store of its own for each call: they share no trips. There is
				// time for every retry.
				_, err := runtime.New(runtime.NewRedisStore(client, patient), quiet, closed).Take(ctx, limit)
				return err
			}
			if err := take(); err != nil { // and loads the script
				t.Fatal(err)
			}
			before := executions(t, direct)

			fault(proxy)
			var wait sync.WaitGroup
			for range calls {
				wait.Go(func() {
					if err := take(); !errors.Is(err, runtime.ErrUnavailable) {
						t.Errorf("got %v, want %v", err, runtime.ErrUnavailable)
					}
				})
			}
			if err := control.Incr(ctx, "control").Err(); err == nil {
				t.Error("a lost reply is no error")
			}
			wait.Wait()
			if n, err := direct.Get(ctx, "control").Int(); n < 2 {
				t.Errorf("a command of the client was executed %d times (%v), so that this shows nothing", n, err)
			}
			if got := executions(t, direct) - before; got != calls {
				t.Errorf("%d calls were executed %d times", calls, got)
			}
			proxy.Pass()
			d, err := runtime.New(runtime.NewRedisStore(direct), quiet, closed).Peek(ctx, limit)
			if charged := 1000 - d.Remaining; err != nil || charged != 1+calls {
				t.Errorf("%d calls were charged %d times (%v)", 1+calls, charged, err)
			}
		})
	}
}

// warm makes a client dial so many connections, each ready to send on.
func warm(t *testing.T, client *redis.Client, connections int) {
	t.Helper()
	conns := make([]*redis.Conn, connections)
	for i := range conns {
		conns[i] = client.Conn()
		if err := conns[i].Ping(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// executions returns how many scripts a server has executed.
func executions(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, command := range []string{"evalsha", "eval"} {
		stat := regexp.MustCompile(fmt.Sprintf(`cmdstat_%s:calls=(\d+),.*rejected_calls=(\d+),failed_calls=(\d+)`, command))
		if match := stat.FindStringSubmatch(info); match != nil {
			called, _ := strconv.Atoi(match[1])
			failed, _ := strconv.Atoi(match[3])
			total += called - failed
		}
	}
	return total
}
