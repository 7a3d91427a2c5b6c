package runtime_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestNothingPrivateOfStores has stores fail in many ways.
func TestNothingPrivateOfStores(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, port, _ := strings.Cut(server.Addr, ":")
	quotes := errors.New("get rate_limit:" + caller + " from " + address + ": gone")
	for name, fault := range map[string]func(*faultproxy.Proxy){
		"refused": (*faultproxy.Proxy).Refuse,
		"silent":  (*faultproxy.Proxy).Stall,
		"cut":     (*faultproxy.Proxy).CutReplies,
		"lost":    (*faultproxy.Proxy).DropReplies,
		"reset":   (*faultproxy.Proxy).Reset,
	} {
		for _, policy := range []runtime.FailurePolicy{runtime.FailClosed, runtime.FailOpen, runtime.FailLocal} {
			t.Run(name+" "+policy.String(), func(t *testing.T) {
				t.Parallel()
				var w notes
				proxy := faultproxy.Start(t, server.Addr)
				client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: proxy.Addr}))
				defer client.Close()
				store := runtime.NewRedisStore(client, runtime.WithMemoryWatch(0.5, time.Millisecond), runtime.CheckSharding(time.Millisecond))
				l := w.limiter(store, runtime.WithNamespace(t.Name()), runtime.WithFailurePolicy(policy))
				w.use(t, l, store, func() { fault(proxy) })
				_, own, _ := strings.Cut(proxy.Addr, ":")
				w.find(t, "127.0.0.1", ":"+port, ":"+own)
			})
		}
	}
	for name, err := range map[string]error{
		"moved":           redistest.Reply("MOVED 1234 " + address),
		"asked":           redistest.Reply("ASK 1234 " + address),
		"redirected":      redistest.Reply("REDIRECT " + address),
		"unknown":         redistest.Reply("ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' 'rate_limit:" + caller + "'"),
		"a proxy's":       redistest.Reply("ERR no upstream " + address + " for key " + caller),
		"a proxy's code":  redistest.Reply("UPSTREAM " + address + " has no " + caller),
		"a plain error":   quotes,
		"a wrapped one":   fmt.Errorf("node %s: %w", address, os.ErrDeadlineExceeded),
		"several at once": errors.Join(quotes, redistest.Reply("MOVED 1 "+address)),
	} {
		for way, fail := range map[string]func([]redis.Cmder, error) error{
			"failing": redistest.Failing, "panicking": func(_ []redis.Cmder, err error) error { panic(err.Error()) },
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				var w notes
				var armed atomic.Bool
				client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: server.Addr}))
				defer client.Close()
				client.AddHook(redistest.Hook(func(cmds []redis.Cmder, send func() error) error {
					// A panic while go-redis connects leaves a lock of its client's locked for ever.
					if armed.Load() && (way == "failing" || !redistest.Connects(cmds...)) {
						return fail(cmds, err)
					}
					return send()
				}))
				store := runtime.NewRedisStore(client)
				var surveyed runtime.Store = store
				if way == "panicking" {
					surveyed = nil // that is the caller's own affair
				}
				w.use(t, w.limiter(store, runtime.WithNamespace(t.Name()), closed), surveyed, func() { armed.Store(true) })
				w.find(t, "127.0.0.1", port)
			})
		}
	}
	secured := redistest.Start(t)
	secured.ServeTLS(t)
	for name, opts := range map[string]*redis.Options{
		"distrusted":  {Addr: secured.Addr, TLSConfig: &tls.Config{RootCAs: x509.NewCertPool()}},
		"no host":     {Addr: "no-such-host.invalid:6379"},
		"no TLS":      {Addr: server.Addr, TLSConfig: &tls.Config{ServerName: "secret.internal"}},
		"no password": {Addr: server.Addr, Username: "ann", Password: "hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w notes
			client := redis.NewClient(runtime.TuneRedis(opts))
			defer client.Close()
			w.use(t, w.limiter(runtime.NewRedisStore(client), closed), nil, func() {})
			w.find(t, "127.0.0.1", "no-such-host", "secret.internal", "hunter2")
		})
	}
	t.Run("a store of the program's", func(t *testing.T) {
		var w notes
		store := &quotingStore{Store: rawstore.Wrap(runtime.NewMemoryStore()).Store}
		w.use(t, w.limiter(rawstore.New(store, nil), closed), nil, func() { store.err = quotes })
		w.find(t)
	})
}

// TestNothingPrivateOfServers has servers refuse commands: servers quote the arguments of
// a command that they do not know. Each failure is of the class that says why.
func TestNothingPrivateOfServers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	check := func(t *testing.T, client redis.UniversalClient, fails bool, classes ...observe.ErrorClass) {
		w := notes{all: effort.Full()}
		store := runtime.NewRedisStore(client, patient, atOnce)
		w.use(t, w.limiter(store, closed), store, func() {})
		w.find(t)
		if fails && len(w.errs) == 0 {
			t.Error("nothing failed")
		}
		for _, err := range w.errs {
			if class := runtime.ClassOf(err); !slices.Contains(classes, class) {
				t.Errorf("class %v: %v", class, err)
			}
		}
	}
	for _, command := range []string{"EVALSHA", "EVAL", "UNLINK", "ZADD", "GET", "TIME", "PTTL", "SCAN"} {
		t.Run("without "+command, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--rename-command", command, "")
			check(t, server.Client(t), true, observe.ErrorClass(decide.ClassNoScript), observe.ErrorClass(decide.ClassScript))
		})
	}
	forbidden := []string{"resetkeys", "-evalsha -eval", "-unlink", "-scan"}
	for _, command := range storetest.Commands() {
		forbidden = append(forbidden, "-"+command)
	}
	for _, rules := range forbidden {
		t.Run("forbidden "+rules, func(t *testing.T) {
			args := []any{"~*", "+@all"}
			for rule := range strings.FieldsSeq(rules) {
				args = append(args, rule)
			}
			admin.FlushAll(t.Context())
			must := []string{"resetkeys", "-evalsha -eval", "-unlink", "-scan", "-time", "-get", "-set", "-zadd", "-setrange", "-pexpire"}
			check(t, server.ClientAs(t, args...), slices.Contains(must, rules), observe.ClassAuth)
		})
	}
	t.Run("foreign types", func(t *testing.T) {
		admin.FlushAll(t.Context())
		for name := range serverRules(time.Minute, 3) {
			for _, tag := range []string{"", "%window", "%token", "%leaky", "%queue", "%counter", "%layered", "%packed", "%permits"} {
				admin.SAdd(t.Context(), "{x}"+name+":"+caller+tag, "x")
			}
		}
		check(t, admin, true, observe.ClassWrongType)
	})
}

// testNothingPrivateOfCluster asks the nodes of a cluster without following where they
// send the client to.
func testNothingPrivateOfCluster(t *testing.T, cluster *redistest.Cluster) {
	moved := 0
	for _, node := range cluster.Nodes[:3] {
		client := node.Client(t)
		var w notes
		store := runtime.NewRedisStore(client, patient, atOnce)
		l := w.limiter(store, closed)
		a := &runtime.Rule{Name: "a", Prefix: "{a}:", Window: time.Minute, Max: 3}
		b := &runtime.Rule{Name: "b", Prefix: "{b}:", Window: time.Minute, Max: 3}
		_, err := l.Take(t.Context(), a.Limit(key(caller)), b.Limit(key(caller)))
		if err == nil || !strings.Contains(causes(err), "CROSSSLOT") || strings.Contains(causes(err), caller) {
			t.Errorf("two slots: got %v", err)
		}
		w.use(t, l, store, func() {})
		w.find(t)
		for _, err := range w.errs {
			if runtime.ClassOf(err) == observe.ErrorClass(decide.ClassMoved) {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("no node sent the client to another")
	}
}
