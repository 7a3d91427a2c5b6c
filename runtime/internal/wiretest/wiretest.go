// Package wiretest holds what every [rediswire.Client] must do, and a store over one, as tests
// that run over any of them, on servers of their own:
//
//	func TestClient(t *testing.T) { wiretest.Run(t, connect) }
//	func TestStore(t *testing.T)  { wiretest.RunStore(t, open) }
package wiretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/rediswire"
)

// Connect makes a client of what go-redis would reach with some options, and has close
// end it. It is of a cluster if there are several addresses, and no name of a master.
type Connect func(tb testing.TB, o *redis.UniversalOptions) (client rediswire.Client, close func())

// Run runs the suite.
func Run(t *testing.T, connect Connect) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Connect)
	}{
		{"scripts", scripts},
		{"commands", commands},
		{"errors", classes},
		{"lost replies", lostReplies},
		{"silence", silence},
		{"refused", refused},
		{"refused by an answer", refusedByAnswer},
		{"closed", closes},
		{"tls", overTLS},
		{"cluster", clusterMoves},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, connect)
		})
	}
}

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// open connects to a server, and closes at the end.
func open(t *testing.T, connect Connect, addrs ...string) rediswire.Client {
	t.Helper()
	client, end := connect(t, &redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(end)
	return client
}

// marshaled is an argument of bytes.
type marshaled []byte

func (m *marshaled) MarshalBinary() ([]byte, error) { return *m, nil }

// eval returns an execution of a text with keys and other arguments.
func eval(text string, keys []string, args ...any) *rediswire.Script {
	n := int64(len(keys))
	s := &rediswire.Script{Args: []any{"eval", text, &n}}
	for _, key := range keys {
		b := marshaled(key)
		s.Args = append(s.Args, &b)
	}
	s.Args = append(s.Args, args...)
	return s
}

// count returns a script that counts on a key.
func count(key string) *rediswire.Script {
	return eval("return {redis.call('INCR', KEYS[1])}", []string{key})
}

// within returns a context of the test that ends.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// executed executes scripts, which must be answered.
func executed(t *testing.T, server rediswire.Server, all ...*rediswire.Script) {
	t.Helper()
	server.Execute(within(t, patience), all)
	for _, s := range all {
		if s.Err != nil {
			t.Fatal(s.Err)
		}
	}
}

// scripts are sent in their order, with every kind of argument, and one that is executed
// again has a new reply.
func scripts(t *testing.T, connect Connect) {
	client := open(t, connect, redistest.Start(t).Addr)
	text, number, bytes := "text", int64(-9_223_372_036_854_775_808), marshaled("\x00\xffé")
	all := eval("return {#ARGV[1], #ARGV[2], #ARGV[3], ARGV[4] == '-9223372036854775808' and 1 or 0}", nil, "string", &text, &bytes, &number)
	first, second := count("k"), count("k")
	executed(t, client, first, all, second)
	if want := []int64{6, 4, 4, 1}; !slices.Equal(all.Numbers, want) {
		t.Errorf("got %v, want %v", all.Numbers, want)
	}
	if !slices.Equal(first.Numbers, []int64{1}) || !slices.Equal(second.Numbers, []int64{2}) {
		t.Errorf("got %v and %v, want 1 and 2", first.Numbers, second.Numbers)
	}
	executed(t, client, first)
	if !slices.Equal(first.Numbers, []int64{3}) {
		t.Errorf("got %v, want 3", first.Numbers)
	}
	unknown := &rediswire.Script{Args: []any{"evalsha", strings.Repeat("a", 40), new(int64)}}
	client.Execute(within(t, patience), []*rediswire.Script{count("k"), unknown, second})
	if !rediswire.Replied(unknown.Err, "NOSCRIPT") || second.Err != nil || !slices.Equal(second.Numbers, []int64{5}) {
		t.Errorf("got %v, and %v, %v after it", unknown.Err, second.Numbers, second.Err)
	}
}

// commands have the replies that the store reads.
func commands(t *testing.T, connect Connect) {
	client := open(t, connect, redistest.Start(t).Addr)
	all := []rediswire.Command{
		{Args: []string{"set", "k", "v"}, Key: 1},
		{Args: []string{"get", "k"}, Key: 1},
		{Args: []string{"get", "other"}, Key: 1},
		{Args: []string{"pttl", "k"}, Key: 1},
		{Args: []string{"scan", "0"}},
		{Args: []string{"info", "memory"}},
	}
	client.Do(within(t, patience), all)
	if got := fmt.Sprintf("%v %v %v %v", all[0].Value, all[1].Value, all[3].Value, all[4].Value); got != "OK v -1 [0 [k]]" {
		t.Errorf("got %s", got)
	}
	if text, is := all[5].Value.(string); !is || !strings.Contains(text, "used_memory:") {
		t.Errorf("got %T", all[5].Value)
	}
	if all[2].Err != rediswire.ErrNil || rediswire.First(all) != rediswire.ErrNil {
		t.Errorf("got %v, want %v", all[2].Err, rediswire.ErrNil)
	}
	ping := []rediswire.Command{{Args: []string{"ping"}}}
	client.Patient(time.Second).Do(within(t, patience), ping)
	if ping[0].Value != "PONG" {
		t.Errorf("got %v, %v", ping[0].Value, ping[0].Err)
	}
}

// classes are what errors of servers are known as.
func classes(t *testing.T, connect Connect) {
	for _, test := range []struct {
		class  decide.Class
		config []string
	}{
		{decide.ClassOOM, []string{"maxmemory", "1"}},
		{decide.ClassAuth, []string{"requirepass", "new"}},
		{decide.ClassReadOnly, []string{"replica-serve-stale-data", "yes"}},
		{decide.ClassWrongType, nil},
	} {
		t.Run(test.class.String(), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client, ctx := open(t, connect, server.Addr), context.Background()
			executed(t, client, count("before"))
			admin := server.Client(t)
			if test.config != nil {
				if err := admin.ConfigSet(ctx, test.config[0], test.config[1]).Err(); err != nil {
					t.Fatal(err)
				}
			}
			switch test.class {
			case decide.ClassAuth: // whoever is there stays
				admin.Do(ctx, "auth", "new")
				admin.Do(ctx, "client", "kill", "type", "normal", "skipme", "yes")
			case decide.ClassReadOnly:
				if err := admin.Do(ctx, "replicaof", "127.0.0.1", "1").Err(); err != nil {
					t.Fatal(err)
				}
			case decide.ClassWrongType:
				admin.LPush(ctx, "k", 1)
			}
			eventually(t, func() error {
				s := count("k")
				client.Execute(within(t, time.Second), []*rediswire.Script{s})
				if got := decide.ClassOf(s.Err); got != test.class {
					return fmt.Errorf("got %v (%w), want %v", got, s.Err, test.class)
				}
				return nil
			})
		})
	}
}

// eventually returns when try makes no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			t.Fatal(err)
		}
	}
}

// lostReplies makes no client send a script again.
func lostReplies(t *testing.T, connect Connect) {
	for name, lose := range map[string]func(*faultproxy.Proxy){
		"thrown away":       (*faultproxy.Proxy).DropReplies,
		"connection closed": (*faultproxy.Proxy).CutReplies,
	} {
		for _, together := range []int{1, 3} {
			t.Run(fmt.Sprint(name, " ", together), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				proxy := faultproxy.Start(t, server.Addr)
				client := open(t, connect, proxy.Addr)
				executed(t, client, count("k"))
				lose(proxy)
				sent := 0
				for begin := time.Now(); time.Since(begin) < time.Second; {
					var all []*rediswire.Script
					for range together {
						all = append(all, count("k"))
					}
					client.Execute(within(t, 300*time.Millisecond), all)
					for _, s := range all {
						if s.Err == nil {
							t.Error("a lost reply is no error")
						}
						sent++
					}
				}
				proxy.Pass()
				n, err := server.Client(t).Get(context.Background(), "k").Int()
				if err != nil || n > 1+sent {
					t.Errorf("%d scripts were executed %d times (%v)", 1+sent, n, err)
				}
				if together == 1 && n == 1 {
					t.Error("no reply was lost, so that this shows nothing")
				}
			})
		}
	}
}

// silence of a server ends with the context if the client is punctual, and the client
// comes back when the server does.
func silence(t *testing.T, connect Connect) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	client := open(t, connect, proxy.Addr)
	executed(t, client, count("k"))
	proxy.Stall()
	const most = 100 * time.Millisecond
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 5 {
				s, begin := count("k"), time.Now()
				client.Execute(within(t, most), []*rediswire.Script{s})
				if s.Err == nil {
					t.Error("silence is no error")
				}
				if took := time.Since(begin); client.About().Punctual && took > most+5*time.Second {
					t.Errorf("it took %v", took)
				}
			}
		})
	}
	all.Wait()
	proxy.Pass()
	eventually(t, func() error {
		s := count("k")
		client.Execute(within(t, time.Second), []*rediswire.Script{s})
		return s.Err
	})
}

// refused connections prove that nothing was sent.
func refused(t *testing.T, connect Connect) {
	proxy := faultproxy.Start(t, redistest.Start(t).Addr)
	client := open(t, connect, proxy.Addr)
	executed(t, client, count("k"))
	proxy.Refuse()
	eventually(t, func() error {
		s := count("k")
		client.Execute(within(t, time.Second), []*rediswire.Script{s})
		if got := decide.ClassOf(s.Err); got != decide.ClassDial {
			return fmt.Errorf("got %v (%w), want %v", got, s.Err, decide.ClassDial)
		}
		return nil
	})
}

// closes: a client that is closed says so.
func closes(t *testing.T, connect Connect) {
	client, end := connect(t, &redis.UniversalOptions{Addrs: []string{redistest.Start(t).Addr}})
	executed(t, client, count("k"))
	end()
	s := count("k")
	client.Execute(within(t, patience), []*rediswire.Script{s})
	if !errors.Is(s.Err, rediswire.ErrClosed) {
		t.Errorf("got %v, want %v", s.Err, rediswire.ErrClosed)
	}
}
