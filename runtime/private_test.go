package runtime_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/failure"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/override"
)

const (
	// caller is the part of a key that nobody is to read in an error, an event or a log.
	caller = "alice@example.com"
	// address is that of a server, as errors name it.
	address = "10.20.30.40:6379"
)

// Notes are the texts of log lines, events and errors, to find in them what nobody is
// to read there: a caller's key and a server's address.
type notes struct {
	mu    sync.Mutex
	texts bytes.Buffer
	lines int // texts that were noted
	errs  []error
	all   bool // every way of counting is used
}

func (w *notes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines++
	return w.texts.Write(p)
}

// note notes the text of an error, and of nothing else that is reached through it.
func (w *notes) note(what string, err error) {
	if err != nil {
		fmt.Fprintf(w, "%s: %v\n", what, err)
	}
	if err != nil && !errors.Is(err, runtime.ErrLimited) {
		w.errs = append(w.errs, err)
	}
}

// limiter returns a limiter that reports to the notes. Two fields of events are left
// out, which are there to say a key and an address.
func (w *notes) limiter(store runtime.Store, opts ...runtime.Option) *runtime.Limiter {
	return runtime.New(store, append([]runtime.Option{
		runtime.WithLogger(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		observing(runtime.Observer{
			Decision:  func(_ context.Context, ev runtime.DecisionEvent) { fmt.Fprintf(w, "%+v\n", ev) },
			KeyDenied: func(_ context.Context, ev runtime.KeyDeniedEvent) { fmt.Fprintf(w, "%s\n", ev.Rule) },
			Failure:   func(_ context.Context, ev runtime.FailureEvent) { fmt.Fprintf(w, "%+v\n", ev) },
			Breaker:   func(ev runtime.BreakerEvent) { fmt.Fprintf(w, "breaker %v\n", ev.Open) },
			Override:  func(ev runtime.OverrideEvent) { fmt.Fprintf(w, "%+v\n", ev) },
			Scale:     func(ev runtime.ScaleEvent) { fmt.Fprintf(w, "%+v\n", ev) },
			Memory:    func(ev runtime.MemoryEvent) { fmt.Fprintf(w, "%+v\n", ev) },
			Panic:     func(ev runtime.PanicEvent) { fmt.Fprintf(w, "%+v\n", ev) },
		}),
	}, opts...)...)
}

// brokenText is the part of a key that cannot be written, and says what it is.
type brokenText struct{}

func (brokenText) MarshalText() ([]byte, error) { return nil, errors.New("cannot write " + caller) }

// use calls all that a limiter does with limits, twice settling what was admitted
// before something happened. If the store is one of Redis its keys are surveyed. The rules
// are of three ways of counting, or of every one.
func (w *notes) use(t *testing.T, l *runtime.Limiter, store runtime.Store, happens func()) {
	ctx := t.Context()
	var limits []runtime.Limit
	var taken []runtime.Decision
	rules := serverRules(time.Minute, 3)
	if !w.all {
		maps.DeleteFunc(rules, func(name string, _ *runtime.Rule) bool {
			return !slices.Contains([]string{"log zset", "fixed", "permits"}, name)
		})
	}
	for name, rule := range rules {
		rule.Name, rule.Prefix = name, "{x}"+name+":"
		limit := rule.Limit(key(caller))
		d, err := l.Take(ctx, limit)
		w.note("take before", err)
		fmt.Fprintf(w, "%+v, %+v\n", d, runtime.Outcome{Decision: d, Err: err})
		limits, taken = append(limits, limit), append(taken, d)
	}
	happens()
	for i, limit := range limits {
		if i%2 == 0 {
			w.note("settle", l.Settle(ctx, taken[i], 0))
		} else {
			l.SettleLater(ctx, taken[i], 0)
		}
		for range 4 {
			_, err := l.Take(ctx, limit)
			w.note("take", err)
		}
		_, err := l.Peek(ctx, limit)
		w.note("peek", err)
		w.note("reset", l.Reset(ctx, limit))
	}
	_, err := l.Take(ctx, limits[:3]...)
	w.note("take of several", err)
	for _, odd := range []runtime.Limit{
		narrow.Limit(key(strings.Repeat(caller, 100))), narrow.Limit(key(caller + "\x00{}:%")), narrow.Limit(key(caller)).WithCost(3),
		narrow.Limit(key(caller)).WithMax(-1), narrow.Limit(key(caller).AddInvalid("nil")), narrow.Limit(runtime.NewKey().AddText(brokenText{})),
	} {
		limits = append(limits, odd, odd)
	}
	for _, out := range l.TakeEach(ctx, limits...) {
		if !errors.Is(out.Err, runtime.ErrInvalidLimit) && !errors.Is(out.Err, runtime.ErrInvalidKey) {
			w.note("take each", out.Err)
		}
	}
	if redis, ok := store.(*runtime.RedisStore); ok {
		var groups []*runtime.KeyGroup
		for _, rule := range rules {
			groups = append(groups, l.KeysOf(rule))
		}
		w.note("survey", redis.Survey(ctx, groups...))
		w.note("close", redis.Close())
	}
	w.note("close", l.Close())
}

// find fails the test if something private was noted, or nothing at all.
func (w *notes) find(t *testing.T, private ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines == 0 {
		t.Error("nothing was noted")
	}
	asBytes := strings.Trim(fmt.Sprint([]byte(caller)), "[]") // how package fmt prints what is no text
	for line := range strings.Lines(w.texts.String()) {
		for _, p := range append(private, caller, asBytes, address, "10.20.30.40") {
			if regexp.MustCompile(regexp.QuoteMeta(p) + `\b`).MatchString(line) {
				t.Errorf("%q is in: %.600s", p, line)
			}
		}
	}
}

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
		"moved":           reply("MOVED 1234 " + address),
		"asked":           reply("ASK 1234 " + address),
		"redirected":      reply("REDIRECT " + address),
		"unknown":         reply("ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' 'rate_limit:" + caller + "'"),
		"a proxy's":       reply("ERR no upstream " + address + " for key " + caller),
		"a proxy's code":  reply("UPSTREAM " + address + " has no " + caller),
		"a plain error":   quotes,
		"a wrapped one":   fmt.Errorf("node %s: %w", address, os.ErrDeadlineExceeded),
		"several at once": errors.Join(quotes, reply("MOVED 1 "+address)),
	} {
		for _, panicked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, panic %v", name, panicked), func(t *testing.T) {
				t.Parallel()
				var w notes
				var armed atomic.Bool
				client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: server.Addr}))
				defer client.Close()
				client.AddHook(hook(func(cmds []redis.Cmder, send func() error) error {
					switch {
					case !armed.Load():
						return send()
					case panicked:
						panic(err.Error())
					}
					return failing(cmds, err)
				}))
				redisStore := runtime.NewRedisStore(client)
				l := w.limiter(redisStore, runtime.WithNamespace(t.Name()), closed)
				var surveyed runtime.Store = redisStore
				if panicked {
					surveyed = nil // that is the caller's own affair
				}
				w.use(t, l, surveyed, func() { armed.Store(true) })
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
		store := &quotingStore{Store: runtime.NewMemoryStore()}
		w.use(t, w.limiter(store, closed), nil, func() { store.err = quotes })
		w.find(t)
	})
	t.Run("a circuit breaker of a node", func(t *testing.T) {
		var w notes
		w.limiter(nil).TellBreaker(address, true)
		w.find(t)
	})
}

// TestNothingPrivateOfServers has servers refuse commands: servers quote the arguments of
// a command that they do not know. Each failure is of the class that says why.
func TestNothingPrivateOfServers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := server.Client(t)
	check := func(t *testing.T, client redis.UniversalClient, fails bool, classes ...runtime.ErrorClass) {
		w := notes{all: true}
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
			check(t, server.Client(t), true, runtime.ErrorClass(failure.NoScript), runtime.ErrorClass(failure.Script))
		})
	}
	forbidden := []string{"resetkeys", "-evalsha -eval", "-unlink", "-scan"}
	for _, right := range rights(t) {
		forbidden = append(forbidden, "-"+strings.TrimPrefix(right, "+"))
	}
	for _, rules := range forbidden {
		t.Run("forbidden "+rules, func(t *testing.T) {
			args := []any{"ACL", "SETUSER", "limiter", "reset", "on", "nopass", "~*", "+@all"}
			for rule := range strings.FieldsSeq(rules) {
				args = append(args, rule)
			}
			ok(t, admin.Do(t.Context(), args...).Err())
			admin.FlushAll(t.Context())
			client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "any"})
			defer client.Close()
			must := []string{"resetkeys", "-evalsha -eval", "-unlink", "-scan", "-time", "-get", "-set", "-zadd", "-setrange", "-pexpire"}
			check(t, client, slices.Contains(must, rules), runtime.ClassAuth)
		})
	}
	t.Run("foreign types", func(t *testing.T) {
		admin.FlushAll(t.Context())
		for name := range serverRules(time.Minute, 3) {
			for _, tag := range []string{"", "%window", "%token", "%leaky", "%queue", "%counter", "%layered", "%packed", "%permits"} {
				admin.SAdd(t.Context(), "{x}"+name+":"+caller+tag, "x")
			}
		}
		check(t, admin, true, runtime.ClassWrongType)
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
			if runtime.ClassOf(err) == runtime.ErrorClass(failure.Moved) {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("no node sent the client to another")
	}
}

// A quotingStore has a store fail once it has an error.
type quotingStore struct {
	runtime.Store
	err error
}

func (s *quotingStore) Take(ctx context.Context, calls []terms.Call) error {
	if s.err != nil && len(calls) > 1 { // of one call it is the call's own
		return s.err
	}
	calls[0].Err = s.err
	if s.err != nil {
		return nil
	}
	return s.Store.Take(ctx, calls)
}

func (s *quotingStore) Peek(context.Context, []terms.Call) error     { return s.err }
func (s *quotingStore) Reset(context.Context, []terms.Charge) error  { return s.err }
func (s *quotingStore) Renew(context.Context, []terms.Call) error    { return s.err }
func (s *quotingStore) Settle(context.Context, []terms.Charge) error { return s.err }

// TestNothingPrivateOfFunctions has functions panic that a limiter was given.
func TestNothingPrivateOfFunctions(t *testing.T) {
	t.Parallel()
	type said struct{ Key string }
	for name, value := range map[string]any{
		"text": caller + " at " + address, "error": errors.New(caller + address), "value": said{caller}, "mistake": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var w notes
			fail := func() {
				if value == nil {
					_ = []bool(nil)[len(caller)]
				}
				panic(value)
			}
			l := w.limiter(runtime.NewMemoryStore(),
				runtime.WithEnabled(func() bool { fail(); return false }),
				runtime.WithRefusalError(func(context.Context, error) error { fail(); return nil }),
				runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { fail(); return runtime.Overrides{}, nil }), time.Hour),
				observing(runtime.Observer{
					KeyDenied: func(context.Context, runtime.KeyDeniedEvent) { fail() },
					Decision:  func(context.Context, runtime.DecisionEvent) { fail() },
				}))
			w.use(t, l, nil, func() {})
			w.find(t)
			if value == nil && !strings.Contains(w.texts.String(), "index out of range") {
				t.Error("the log does not say what the mistake is")
			}
		})
	}
}

// TestNothingPrivateOfOverrides gives a limiter overrides that are wrong in every way,
// and wants each error to be noted, without the key, and to have the key in its cause.
func TestNothingPrivateOfOverrides(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}
	overriding := func(keys keys) runtime.OverrideSource { return fixed(one(runtime.Override{Keys: keys})) }
	fails := func(err error) runtime.OverrideSource {
		return runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return runtime.Overrides{}, err })
	}
	file := func(name, text string) runtime.OverrideSource {
		path := filepath.Join(t.TempDir(), name)
		ok(t, os.WriteFile(path, []byte(text), 0o600))
		return override.File(path)
	}
	hashes := 0
	hash := func(fields ...string) runtime.OverrideSource {
		hashes++
		client, key := server.Client(t), fmt.Sprint("h", hashes)
		ok(t, client.HSet(t.Context(), key, fields).Err())
		return override.Redis(client, key)
	}
	gone := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1"}))
	defer gone.Close()
	for name, c := range map[string]struct {
		source runtime.OverrideSource
		cause  string // is in the cause
	}{
		"max":            {overriding(keys{caller: maximum(-1)}), caller},
		"pattern":        {overriding(keys{caller + "*x": {}}), caller},
		"escape":         {overriding(keys{caller + "%41": {}}), caller},
		"twice":          {overriding(keys{caller + "é": {}, caller + "%C3%A9": {}}), caller},
		"does not fit":   {overriding(keys{caller: maximum(runtime.MaxCount)}), caller},
		"dial":           {fails(&url.Error{Op: "Get", URL: "http://" + address + "/limits?key=" + caller, Err: context.DeadlineExceeded}), address},
		"own":            {fails(errors.New("no limits of " + caller + " at " + address)), caller},
		"redis":          {override.Redis(gone, "limits"), "127.0.0.1:1"},
		"json value":     {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": {"max": "many"}}}}}`), caller},
		"json object":    {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": 5}}}}`), caller},
		"json empty":     {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": null}}}}`), caller},
		"json twice":     {file("a.json", `{"rules": {"r": {"keys": {"`+caller+`": {}, "`+caller+`": {}}}}}`), caller},
		"json misplaced": {file("a.json", `{"rules": {"r": {"`+caller+`": {"max": 5}}}}`), caller},
		"yaml value":     {file("a.yaml", "rules:\n  r:\n    keys:\n      "+caller+": {max: many}\n"), caller},
		"yaml twice":     {file("a.yaml", "rules:\n  r:\n    keys:\n      "+caller+": {}\n      "+caller+": {}\n"), caller},
		"yaml syntax":    {file("a.yaml", "rules:\n  r:\n    keys:\n      "+caller+": *"+caller+"\n"), ""},
		"yaml alias":     {file("a.yaml", "rules:\n  r:\n    keys: {a: &a {max: 1}, "+caller+": *a}\n"), ""},
		"hash value":     {hash(`["r", "`+caller+`"]`, `{"max": "many"}`), caller},
		"hash json":      {hash(`["r", "`+caller+`"]`, `{"max": `), caller},
		"hash field":     {hash(`["r", "`+caller+`", "x"]`, `{}`), caller},
		"hash twice":     {hash(`["r", "`+caller+`"]`, `{"max": 1}`, `r`, `{"keys": {"`+caller+`": {"max": 1}}}`), caller},
	} {
		t.Run(name, func(t *testing.T) {
			var w notes
			seen := make(chan error, 10)
			l := w.limiter(runtime.NewMemoryStore(), runtime.WithOverrides(c.source, time.Hour),
				observing(runtime.Observer{Override: func(ev runtime.OverrideEvent) { seen <- ev.Err }}))
			_, err := l.Take(t.Context(), rule.Limit(key(caller)))
			w.note("take", err)
			rejected := <-seen
			if rejected == nil { // before the rule was known
				rejected = <-seen
			}
			ok(t, l.Close())
			w.find(t, "127.0.0.1")
			if cause := errors.Unwrap(rejected); c.cause != "" && (cause == nil || !strings.Contains(cause.Error(), c.cause)) {
				t.Errorf("the cause of %q is %v", rejected, cause)
			}
		})
	}
}

// TestCauseIsKept wants what an error does not say to be reached by errors.Unwrap.
func TestCauseIsKept(t *testing.T) {
	t.Parallel()
	cause := fmt.Errorf("node %s: %w", address, os.ErrDeadlineExceeded)
	store := &quotingStore{Store: runtime.NewMemoryStore(), err: cause}
	var failed error
	l := runtime.New(store, quiet, closed, observing(runtime.Observer{
		Failure: func(_ context.Context, ev runtime.FailureEvent) { failed = ev.Err },
	}))
	limit := (&runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}).Limit(key(caller))
	_, taken := l.Take(t.Context(), limit)
	_, peeked := l.Peek(t.Context(), limit)
	for name, err := range map[string]error{"take": taken, "peek": peeked, "reset": l.Reset(t.Context(), limit), "event": failed} {
		found := false
		for next := err; next != nil; next = errors.Unwrap(next) {
			found = found || next == cause
		}
		if got := runtime.ClassOf(err); !found || got != runtime.ClassTimeout {
			t.Errorf("%s: errors.Unwrap leads from %v to its cause: %v; the class is %v", name, err, found, got)
		}
	}
	if got, want := taken.Error(), runtime.ErrUnavailable.Error(); got != want || !errors.Is(taken, runtime.ErrUnavailable) {
		t.Errorf("a client that sees the error reads %q, want %q", got, want)
	}
}
