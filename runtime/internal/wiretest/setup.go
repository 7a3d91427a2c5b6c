package wiretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/rediswire"
)

// refusedByAnswer: a server that takes a connection, and answers what sets it up with an
// error, has executed nothing. That is the error of each script and command, however many
// go together: none is without a result and without an error.
func refusedByAnswer(t *testing.T, connect Connect) {
	for _, test := range []struct {
		name    string
		classes []decide.Class
		refuse  []any
	}{
		{"another password", []decide.Class{decide.ClassAuth}, []any{"acl", "setuser", "u", "resetpass", ">other"}},
		{"user is off", []decide.Class{decide.ClassAuth}, []any{"acl", "setuser", "u", "off"}},
		{"no such user", []decide.Class{decide.ClassAuth}, []any{"acl", "deluser", "u"}},
		{"too many clients", []decide.Class{decide.ClassDial, decide.ClassConnection}, []any{"config", "set", "maxclients", "1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			admin, ctx := server.Client(t, func(o *redis.Options) { o.PoolSize = 1 }), context.Background()
			must := func(args ...any) {
				if err := admin.Do(ctx, args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			must("acl", "setuser", "u", "on", ">p", "~*", "&*", "+@all")
			client, end := connect(t, &redis.UniversalOptions{Addrs: []string{server.Addr}, Username: "u", Password: "p"})
			defer end()
			executed(t, client, count("k"))
			must(test.refuse...)
			must("client", "kill", "type", "normal", "skipme", "yes")
			for _, together := range []int{1, 2, 5} {
				eventually(t, func() error { return allRefused(t, client, together, test.classes) })
			}
			if n := admin.Get(ctx, "k").Val(); n != "1" {
				t.Errorf("it was counted to %s", n)
			}
		})
	}
}

// allRefused sends so many scripts together, and so many commands, and returns an error
// unless each has an error of one of some classes.
func allRefused(t *testing.T, client rediswire.Client, together int, classes []decide.Class) (err error) {
	var scripts []*rediswire.Script
	commands := make([]rediswire.Command, together)
	for i := range commands {
		scripts = append(scripts, count("k"))
		commands[i].Args = []string{"info", "memory"}
	}
	client.Execute(within(t, time.Second), scripts)
	client.Do(within(t, time.Second), commands)
	for i := range commands {
		for _, got := range []error{scripts[i].Err, commands[i].Err} {
			if class := decide.ClassOf(got); got == nil || !slices.Contains(classes, class) {
				err = errors.Join(err, fmt.Errorf("%d of %d: got %v (%v), want %v", i, together, class, got, classes))
			}
		}
	}
	return err
}
