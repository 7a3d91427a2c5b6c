package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// caller is the part of a key that nobody is to read in an error or a log.
const caller = "alice@example.com"

// unspoken takes from a limiter on a client by every algorithm, alone and with
// several limits, peeks, resets and surveys, and wants no error text and no log
// line to hold the caller's part of the key. It returns the errors.
func unspoken(t *testing.T, client redis.UniversalClient) (seen []error) {
	t.Helper()
	ctx := t.Context()
	var log bytes.Buffer
	store := runtime.NewRedisStore(client, patient, atOnce)
	limiter := runtime.New(store, closed, runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	var limits []runtime.Limit
	check := func(err error) {
		if err == nil || errors.Is(err, runtime.ErrLimited) {
			return
		}
		seen = append(seen, err)
		if strings.Contains(err.Error(), caller) {
			t.Errorf("the key is in the error: %v", err)
		}
	}
	for name, rule := range serverRules(time.Minute, 3) {
		rule.Prefix, rule.Name = "{x}"+name+":", name
		limit := rule.Limit(key(caller))
		limits = append(limits, limit)
		for range 4 {
			_, err := limiter.Take(ctx, limit)
			check(err)
		}
		_, err := limiter.Peek(ctx, limit)
		check(err)
		check(store.Survey(ctx, limiter.KeysOf(rule)))
		check(limiter.Reset(ctx, limit))
	}
	_, err := limiter.Take(ctx, limits[:3]...)
	check(err)
	if errors.Is(err, runtime.ErrUnavailable) && log.Len() == 0 {
		t.Error("nothing was logged")
	}
	if strings.Contains(log.String(), caller) {
		t.Errorf("the key is in the log:\n%s", log.String())
	}
	return seen
}

// TestErrorTextOfUnknownCommand renames what the store sends, and what scripts
// call: servers quote the arguments of a command that they do not know.
func TestErrorTextOfUnknownCommand(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"EVALSHA", "EVAL", "UNLINK", "ZADD", "GET", "TIME", "PTTL", "SCAN"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--rename-command", command, "")
			seen := unspoken(t, server.Client(t))
			if len(seen) == 0 {
				t.Errorf("nothing failed without %s", command)
			}
			for _, err := range seen {
				class := runtime.ClassOf(err)
				if class != runtime.ClassNoScript && class != runtime.ClassScript {
					t.Errorf("class %v: %v", class, err)
				}
			}
		})
	}
}

// TestErrorTextOfForbidden takes rights away from the store's user, one after the
// other: each failure is one of rights, and says no key.
func TestErrorTextOfForbidden(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	denied := []string{"resetkeys", "-evalsha -eval", "-unlink", "-scan"}
	for _, right := range rights(t) {
		denied = append(denied, "-"+strings.TrimPrefix(right, "+"))
	}
	for _, rules := range denied {
		t.Run(rules, func(t *testing.T) {
			args := []any{"ACL", "SETUSER", "limiter", "reset", "on", "nopass", "~*", "+@all"}
			for rule := range strings.FieldsSeq(rules) {
				args = append(args, rule)
			}
			if err := admin.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
			admin.FlushAll(t.Context())
			client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "any"})
			defer client.Close()
			seen := unspoken(t, client)
			for _, err := range seen {
				if class := runtime.ClassOf(err); class != runtime.ClassAuth {
					t.Errorf("class %v: %v", class, err)
				}
			}
			switch rules {
			case "resetkeys", "-evalsha -eval", "-unlink", "-scan", "-time", "-get", "-set", "-zadd", "-setrange", "-pexpire":
				if len(seen) == 0 {
					t.Error("nothing failed")
				}
			}
		})
	}
}

// TestErrorTextOfForeignType has keys of other types in the way.
func TestErrorTextOfForeignType(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	limiter := runtime.New(nil)
	for name, rule := range serverRules(time.Minute, 3) {
		rule.Prefix = "{x}" + name + ":"
		group := limiter.KeysOf(rule)
		for _, tag := range []string{"", "%window", "%token", "%leaky", "%queue", "%counter", "%layered", "%packed"} {
			client.SAdd(ctx, group.Prefix+caller+tag, "x")
		}
	}
	unspoken(t, client)
}

// testErrorTextOfCluster asks the nodes of a cluster without following where they
// send the client to.
func testErrorTextOfCluster(t *testing.T, cluster *redistest.Cluster) {
	moved := 0
	for _, node := range cluster.Nodes[:3] {
		client := node.Client(t)
		for _, err := range unspoken(t, client) {
			if runtime.ClassOf(err) == runtime.ClassMoved {
				moved++
			}
		}
		limiter := onRedis(client)
		a := &runtime.Rule{Name: "a", Prefix: "{a}:", Window: time.Minute, Max: 3}
		b := &runtime.Rule{Name: "b", Prefix: "{b}:", Window: time.Minute, Max: 3}
		_, err := limiter.Take(t.Context(), a.Limit(key(caller)), b.Limit(key(caller)))
		if err == nil || !strings.Contains(causes(err), "CROSSSLOT") || strings.Contains(causes(err), caller) {
			t.Errorf("two slots: got %v", err)
		}
	}
	if moved == 0 {
		t.Error("no node sent the client to another")
	}
}
