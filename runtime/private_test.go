package runtime_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/override"
)

// address is that of a server, as errors name it.
const address = "10.20.30.40:6379"

// Notes are the texts of log lines, events and errors, to find in them what nobody is
// to read there: a caller's key and a server's address.
type notes struct {
	mu    sync.Mutex
	texts bytes.Buffer
	lines int // texts that were noted
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
}

// limiter returns a limiter that reports to the notes. Two fields of events are left
// out, which are there to say a key and an address.
func (w *notes) limiter(store runtime.Store, opts ...runtime.Option) *runtime.Limiter {
	level := slog.HandlerOptions{Level: slog.LevelDebug}
	return runtime.New(store, append([]runtime.Option{
		runtime.WithLogger(slog.New(slog.NewTextHandler(w, &level))),
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

// use calls all that a limiter does with limits, twice settling what was admitted
// before something happened.
func (w *notes) use(t *testing.T, l *runtime.Limiter, happens func()) {
	ctx := t.Context()
	var limits []runtime.Limit
	var taken []runtime.Decision
	for name, rule := range serverRules(time.Minute, 3) {
		rule.Name, rule.Prefix = name, name+":"
		limit := rule.Limit(key(caller))
		d, err := l.Take(ctx, limit)
		w.note("take before", err)
		limits, taken = append(limits, limit), append(taken, d)
	}
	happens()
	for i, limit := range limits {
		if i%2 == 0 {
			w.note("settle", l.Settle(ctx, taken[i], limit.WithSettled(0)))
		} else {
			l.SettleLater(ctx, taken[i], limit.WithSettled(0))
		}
		_, err := l.Take(ctx, limit)
		w.note("take", err)
		_, err = l.Peek(ctx, limit)
		w.note("peek", err)
		w.note("reset", l.Reset(ctx, limit))
	}
	_, err := l.Take(ctx, limits[:3]...)
	w.note("take of several", err)
	for _, out := range l.TakeEach(ctx, limits...) {
		w.note("take each", out.Err)
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
	for line := range strings.Lines(w.texts.String()) {
		for _, p := range append(private, caller, address, "10.20.30.40") {
			if regexp.MustCompile(regexp.QuoteMeta(p) + `\b`).MatchString(line) {
				t.Errorf("%q is in: %.600s", p, line)
			}
		}
	}
}

// A replied error is one that a server, or a proxy before it, has replied.
type replied string

func (r replied) Error() string { return string(r) }
func (replied) RedisError()     {}

// A hookFault is how a failing hook fails.
type hookFault struct {
	err      error
	panicked bool
}

// A failing hook has commands fail, or panic, once it holds a hookFault. A store sends
// commands in goroutines of its own too.
type failing struct{ fault atomic.Pointer[hookFault] }

// fail returns the hook's error, if it does not panic.
func (f *failing) fail() error {
	fault := f.fault.Load()
	if fault == nil {
		return nil
	}
	if fault.panicked {
		panic(fault.err.Error())
	}
	return fault.err
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := f.fail(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := f.fail(); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
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
				rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}
				w.use(t, l, func() { fault(proxy) })
				w.note("survey", store.Survey(t.Context(), l.KeysOf(rule)))
				w.note("close", store.Close())
				_, own, _ := strings.Cut(proxy.Addr, ":")
				w.find(t, "127.0.0.1", ":"+port, ":"+own)
			})
		}
	}
	for name, err := range map[string]error{
		"moved":           replied("MOVED 1234 " + address),
		"asked":           replied("ASK 1234 " + address),
		"redirected":      replied("REDIRECT " + address),
		"unknown":         replied("ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' 'rate_limit:" + caller + "'"),
		"a proxy's":       replied("ERR no upstream " + address + " for key " + caller),
		"a proxy's code":  replied("UPSTREAM " + address + " has no " + caller),
		"a plain error":   quotes,
		"a wrapped one":   fmt.Errorf("node %s: %w", address, os.ErrDeadlineExceeded),
		"several at once": errors.Join(quotes, replied("MOVED 1 "+address)),
	} {
		for _, panicked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, panic %v", name, panicked), func(t *testing.T) {
				t.Parallel()
				var w notes
				hook := new(failing)
				client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: server.Addr}))
				defer client.Close()
				client.AddHook(hook)
				store := runtime.NewRedisStore(client)
				l := w.limiter(store, runtime.WithNamespace(t.Name()), runtime.WithFailurePolicy(runtime.FailClosed))
				w.use(t, l, func() { hook.fault.Store(&hookFault{err, panicked}) })
				if !panicked {
					rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}
					w.note("survey", store.Survey(t.Context(), l.KeysOf(rule)))
				}
				w.find(t, "127.0.0.1", port)
			})
		}
	}
	for name, opts := range map[string]*redis.Options{
		"no host":     {Addr: "no-such-host.invalid:6379"},
		"no TLS":      {Addr: server.Addr, TLSConfig: &tls.Config{ServerName: "secret.internal"}},
		"no password": {Addr: server.Addr, Username: "ann", Password: "hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w notes
			client := redis.NewClient(runtime.TuneRedis(opts))
			defer client.Close()
			w.use(t, w.limiter(runtime.NewRedisStore(client), runtime.WithFailurePolicy(runtime.FailClosed)), func() {})
			w.find(t, "127.0.0.1", "no-such-host", "secret.internal", "hunter2")
		})
	}
	t.Run("a store of the program's", func(t *testing.T) {
		var w notes
		store := &quotingStore{Store: runtime.NewMemoryStore()}
		w.use(t, w.limiter(store, runtime.WithFailurePolicy(runtime.FailClosed)), func() { store.err = quotes })
		w.find(t)
	})
	t.Run("a circuit breaker of a node", func(t *testing.T) {
		var w notes
		w.limiter(nil).TellBreaker(address, true)
		w.find(t)
	})
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

func (s *quotingStore) Peek(context.Context, []terms.Call) error    { return s.err }
func (s *quotingStore) Reset(context.Context, []terms.Charge) error { return s.err }
func (s *quotingStore) Renew(context.Context, []terms.Call) error   { return s.err }
func (s *quotingStore) Settle(context.Context, []terms.Charge) error {
	return s.err
}

// TestNothingPrivateOfFunctions has functions panic that a limiter was given.
func TestNothingPrivateOfFunctions(t *testing.T) {
	t.Parallel()
	type said struct{ Key string }
	for name, value := range map[string]any{
		"text": caller + " at " + address, "error": errors.New(caller + address), "value": said{caller},
	} {
		t.Run(name, func(t *testing.T) {
			var w notes
			l := w.limiter(runtime.NewMemoryStore(),
				runtime.WithEnabled(func() bool { panic(value) }),
				runtime.WithDenied(func(context.Context, error) error { panic(value) }),
				runtime.WithOverrides(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { panic(value) }), time.Hour),
				observing(runtime.Observer{
					KeyDenied: func(context.Context, runtime.KeyDeniedEvent) { panic(value) },
					Decision:  func(context.Context, runtime.DecisionEvent) { panic(value) },
				}))
			w.use(t, l, func() {})
			w.find(t)
		})
	}
	t.Run("a mistake", func(t *testing.T) {
		var w notes
		l := w.limiter(runtime.NewMemoryStore(), runtime.WithEnabled(func() bool {
			var limits []bool
			return limits[len(caller)]
		}))
		w.use(t, l, func() {})
		w.find(t)
		if !strings.Contains(w.texts.String(), "index out of range") {
			t.Error("the log does not say what the mistake is")
		}
	})
}

// TestNothingPrivateOfOverrides gives a limiter overrides that are wrong in every way,
// and wants each error to be noted, without the key, and to have the key in its cause.
func TestNothingPrivateOfOverrides(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}
	negative, large := int64(-1), int64(runtime.MaxCount)
	of := func(keys map[string]runtime.KeyOverride) runtime.OverrideSource {
		return runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			return runtime.Overrides{Rules: map[string]runtime.Override{"r": {Keys: keys}}}, nil
		})
	}
	fails := func(err error) runtime.OverrideSource {
		return runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return runtime.Overrides{}, err })
	}
	file := func(name, text string) runtime.OverrideSource {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return override.File(path)
	}
	hash := func(key string, fields ...string) runtime.OverrideSource {
		client := server.Client(t)
		if err := client.HSet(t.Context(), key, fields).Err(); err != nil {
			t.Fatal(err)
		}
		return override.Redis(client, key)
	}
	gone := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "127.0.0.1:1"}))
	defer gone.Close()
	for name, c := range map[string]struct {
		source runtime.OverrideSource
		cause  string // is in the cause
	}{
		"max":            {of(map[string]runtime.KeyOverride{caller: {Max: &negative}}), caller},
		"pattern":        {of(map[string]runtime.KeyOverride{caller + "*x": {}}), caller},
		"escape":         {of(map[string]runtime.KeyOverride{caller + "%41": {}}), caller},
		"twice":          {of(map[string]runtime.KeyOverride{caller + "é": {}, caller + "%C3%A9": {}}), caller},
		"does not fit":   {of(map[string]runtime.KeyOverride{caller: {Max: &large}}), caller},
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
		"hash value":     {hash("h1", `["r", "`+caller+`"]`, `{"max": "many"}`), caller},
		"hash json":      {hash("h2", `["r", "`+caller+`"]`, `{"max": `), caller},
		"hash field":     {hash("h3", `["r", "`+caller+`", "x"]`, `{}`), caller},
		"hash twice":     {hash("h4", `["r", "`+caller+`"]`, `{"max": 1}`, `r`, `{"keys": {"`+caller+`": {"max": 1}}}`), caller},
	} {
		t.Run(name, func(t *testing.T) {
			var w notes
			told := make(chan error, 10)
			l := w.limiter(runtime.NewMemoryStore(), runtime.WithOverrides(c.source, time.Hour),
				observing(runtime.Observer{Override: func(ev runtime.OverrideEvent) { told <- ev.Err }}))
			_, err := l.Take(t.Context(), rule.Limit(key(caller)))
			w.note("take", err)
			rejected := <-told
			if rejected == nil { // before the rule was known
				rejected = <-told
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			w.find(t, "127.0.0.1")
			t.Logf("%v", rejected)
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
	rule := &runtime.Rule{Name: "r", Prefix: "r:", Window: time.Minute, Max: 3}
	_, taken := l.Take(t.Context(), rule.Limit(key(caller)))
	_, peeked := l.Peek(t.Context(), rule.Limit(key(caller)))
	for name, err := range map[string]error{
		"take": taken, "peek": peeked, "reset": l.Reset(t.Context(), rule.Limit(key(caller))), "event": failed,
	} {
		found := false
		for next := err; next != nil; next = errors.Unwrap(next) {
			found = found || next == cause
		}
		if !found {
			t.Errorf("%s: errors.Unwrap does not lead from %v to its cause", name, err)
		}
		if got := runtime.ClassOf(err); got != runtime.ClassTimeout {
			t.Errorf("%s: the class is %v", name, got)
		}
	}
	if got, want := taken.Error(), runtime.ErrUnavailable.Error(); got != want || !errors.Is(taken, runtime.ErrUnavailable) {
		t.Errorf("a client that sees the error reads %q, want %q", got, want)
	}
}
