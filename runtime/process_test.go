package runtime_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rediswire"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

// testProcesses has limiters report what they have in force, and wants to read it, of their
// namespace, until they are closed.
func testProcesses(t *testing.T, client redis.UniversalClient, _ []*redistest.Server) {
	ok(t, client.HSet(t.Context(), "limits", "r", `{"max":7}`).Err())
	store := runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second))
	open := func(namespace string, opts ...runtime.Option) *runtime.Limiter {
		l := runtime.New(store, append(opts, runtime.WithNamespace(namespace), new(lines).Logger())...)
		l.Register(&runtime.Rule{Name: "r", Window: 10 * time.Second, Max: 5}, &runtime.Rule{Name: "d", Period: rule.Day, Max: 9, Algorithm: runtime.FixedWindow})
		return l
	}
	follower := open("shop", runtime.WithOverrides(override.Redis(client, "limits"), time.Hour))
	plain, other := open("shop"), open("")
	empty := runtime.New(store, runtime.WithNamespace("shop"))
	for _, l := range []*runtime.Limiter{follower, plain, other, empty} {
		l.Report()
		l.Report()
	}
	read := func(namespace string) []bridge.Process {
		found, err := bridge.StoreOf(store).Processes(t.Context(), namespace)
		ok(t, err)
		return found
	}
	found := read("shop")
	if len(found) != 2 || len(read("")) != 1 {
		t.Fatalf("found %+v", found)
	}
	for _, p := range found {
		same(t, "rules", []bridge.ProcessRule{{Name: "d", Prefix: "rate_limit:d:", Terms: "9 in a day, fixed-window"}, {Name: "r", Prefix: "rate_limit:r:", Terms: "5 in 10s, sliding-log"}}, p.Rules)
	}
	if n := client.Exists(t.Context(), "shop:rate_limit:{processes}:rules:"+found[0].Digest).Val(); n != 1 || found[0].Digest != found[1].Digest {
		t.Errorf("the rules of both are kept %d times: %+v", n, found)
	}
	for _, p := range found {
		if p.Silent || time.Since(p.Alive).Abs() > time.Minute || p.Host == "" || p.Behind.Abs() > time.Minute {
			t.Errorf("it reports right now: %+v", p)
		}
	}
	slices.SortFunc(found, func(a, b bridge.Process) int { return cmp.Compare(b.Overrides, a.Overrides) })
	want, err := override.Redis(client, "limits").Overrides(t.Context())
	ok(t, err)
	same(t, "overrides of the follower", [2]string{"redis:limits", want.Version()}, [2]string{found[0].Overrides, found[0].Version})
	same(t, "overrides of the other", [2]string{}, [2]string{found[1].Overrides, found[1].Version})
	for _, key := range []string{"shop:rate_limit:{processes}:0", "shop:rate_limit:{processes}:1"} {
		if left := client.PTTL(t.Context(), key).Val(); left == -1 || left > 4*time.Minute {
			t.Errorf("%s is kept for %v", key, left)
		}
	}
	ok(t, follower.Close())
	if found := read("shop"); len(found) != 1 || found[0].Overrides != "" {
		t.Errorf("after the end of one: %+v", found)
	}
	ok(t, errors.Join(plain.Close(), other.Close(), empty.Close()))
	if found := append(read("shop"), read("")...); len(found) > 0 {
		t.Errorf("after the end: %+v", found)
	}
}

// TestReportsAreSmall has 500 processes with 1,000 rules report, as one does that has calls and findings: that takes no
// more than 5 MB in Redis.
func TestReportsAreSmall(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	l := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)), new(lines).Logger())
	defer l.Close()
	rules := make([]*runtime.Rule, bridge.MaxReported)
	for i := range rules {
		rules[i] = &runtime.Rule{Name: fmt.Sprintf("orders.Service.Method%d", i), Window: time.Hour, Max: int64(i + 1)}
	}
	l.Register(rules...)
	l.Report()
	for i := range 100 {
		_, _ = l.Take(t.Context(), rules[i].Limit(runtime.NewKey().AddString(fmt.Sprint("customer-", i))))
		_, _ = l.Take(t.Context(), rules[i].Limit(runtime.NewKey().AddString(""))) // a finding
	}
	l.Report()
	const reports, processes = "rate_limit:{processes}:", 500
	each := bridge.ProcessCalls{}
	for i := range 10 {
		each.Keys = append(each.Keys, bridge.KeyCalls{Rule: rules[i].Name, Key: fmt.Sprint("customer-", i), Count: 1 << 20})
	}
	for i := range 50 { // a process that holds what it tells at most
		each.Permits = append(each.Permits, bridge.KeyPermits{Rule: rules[i].Name, Key: fmt.Sprint("customer-", i), Permits: 1, Since: time.Now()})
	}
	for i := range 100 {
		each.Rules = append(each.Rules, [5]int64{int64(i), 1000, 100, 0, 0})
	}
	for _, hash := range []string{reports + "0", reports + "1", reports + "calls"} {
		for name, text := range client.HGetAll(t.Context(), hash).Val() {
			for i := range processes {
				if hash == reports+"calls" {
					each.Seconds = 5
					told, err := json.Marshal(each)
					ok(t, err)
					text = string(told)
				}
				other := fmt.Sprint(name, "-", i)
				ok(t, client.HSet(t.Context(), hash, other, strings.ReplaceAll(text, name, other)).Err())
				ok(t, client.ZAdd(t.Context(), reports+"alive", redis.Z{Score: float64(time.Now().Unix()), Member: other}).Err())
			}
		}
	}
	total := int64(0)
	for _, key := range client.Keys(t.Context(), reports+"*").Val() {
		n := client.MemoryUsage(t.Context(), key, 0).Val()
		t.Logf("%s: %d bytes", key, n)
		total += n
	}
	if total > 5_000_000 {
		t.Errorf("%d bytes", total)
	}
	found, err := bridge.StoreOf(runtime.NewRedisStore(client)).Processes(t.Context(), "")
	if err != nil || len(found) != processes+1 || len(found[1].Rules) != len(rules) || len(found[1].Calls.Keys) != 10 {
		t.Errorf("%v, %d processes", err, len(found))
	}
}

// TestSimilarNamespaces has two processes spell one namespace in two ways, and one that may not know.
func TestSimilarNamespaces(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	ok(t, client.Do(t.Context(), "ACL", "SETUSER", "shopper", "on", ">secret", "~shop:*", "+@all").Err())
	open := func(namespace, user string) (*runtime.Limiter, *lines) {
		options := *client.Options()
		options.Username = user
		if user != "" {
			options.Password = "secret"
		}
		own := redis.NewClient(&options)
		var out lines
		l := runtime.New(runtime.NewRedisStore(own, runtime.WithTimeout(5*time.Second)), runtime.WithNamespace(namespace), out.Logger())
		t.Cleanup(func() { ok(t, errors.Join(l.Close(), own.Close())) })
		l.Register(&runtime.Rule{Name: "r", Window: 10 * time.Second, Max: 5})
		l.Report()
		return l, &out
	}
	first, out := open("shop", "")
	same(t, "alone", nil, codes(first))
	for _, other := range []string{"shop", "shop2", ""} {
		l, _ := open(other, "")
		same(t, other, nil, codes(l))
	}
	second, also := open("Shop ", "")
	wantFound(t, second, also, "two_namespaces")
	same(t, "the other", "shop", second.Findings()[0].Detail)
	first.Report()
	wantFound(t, first, out, "two_namespaces")
	blind, _ := open("shop", "shopper")
	ok(t, client.Do(t.Context(), "ACL", "LOG", "RESET").Err())
	blind.Report()
	same(t, "one that may not look", nil, codes(blind))
	refused, err := client.Do(t.Context(), "ACL", "LOG").Slice()
	ok(t, err)
	same(t, "refused at the next report", 0, len(refused))
}

// TestReportRefused takes the rights from a process that it needs to report.
func TestReportRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	var out lines
	l := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)), out.Logger())
	l.Register(&runtime.Rule{Name: "r", Window: 10 * time.Second, Max: 5})
	ok(t, client.Do(t.Context(), "ACL", "SETUSER", "default", "-hset").Err())
	l.Report()
	l.Report()
	wantFound(t, l, &out, "report_refused")
	ok(t, client.Do(t.Context(), "ACL", "SETUSER", "default", "+hset").Err())
	l.Report()
	same(t, "findings", nil, codes(l))
	ok(t, l.Close())
}

// TestReportTimes looks at when a limiter reports: never at a call.
func TestReportTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wire countingClient
		var most atomic.Int64
		source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			n := most.Load()
			return runtime.Overrides{Rules: map[string]rule.Override{"r": {Max: &n}}}, nil
		})
		open := func(opts ...runtime.Option) *runtime.Limiter {
			l := runtime.New(wrapper.NewRedisStore(&wire), append(opts, new(lines).Logger())...)
			l.Register(&runtime.Rule{Name: "r", Window: 10 * time.Second, Max: 5})
			return l
		}
		silent := open(runtime.WithoutReports())
		l := open(runtime.WithOverrides(source, time.Second))
		began := time.Now()
		wants := func(at time.Duration, reports int64) {
			t.Helper()
			time.Sleep(at - time.Since(began))
			synctest.Wait()
			same(t, "reports", reports, wire.reports.Load())
		}
		wants(9*time.Second, 0)
		wants(11*time.Second, 1)
		wants(69*time.Second, 1)
		wants(71*time.Second, 2)
		most.Store(3)
		wants(73500*time.Millisecond, 3)
		wants(131*time.Second, 3)
		wants(134*time.Second, 4)
		for range 100 { // one after the other: none puts the report off
			most.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		says, err := source.Overrides(t.Context())
		ok(t, err)
		if told := wire.last.Load(); told == nil || !strings.Contains(*told, says.Version()) {
			t.Errorf("after two seconds the last change is not told: %v", told)
		}
		signs, reports := wire.signs.Load(), wire.reports.Load()
		wants(200*time.Second, reports)
		if n := wire.signs.Load() - signs; n < 10 || n > 12 {
			t.Errorf("%d signs of life in 55s", n)
		}
		ok(t, errors.Join(l.Close(), silent.Close()))
		wants(time.Hour, reports+1) // which was taken away
	})
}

// A countingClient counts reports.
type countingClient struct {
	rediswire.Client
	reports, signs atomic.Int64
	last           atomic.Pointer[string]
}

func (c *countingClient) Do(_ context.Context, commands []rediswire.Command) {
	for i := range commands {
		commands[i].Value = int64(0)
		args := commands[i].Args
		switch {
		case args[0] != "eval":
		case args[11] == ".":
			c.signs.Add(1)
		default:
			c.reports.Add(1)
			c.last.Store(&args[11])
		}
	}
}

func (c *countingClient) Patient(time.Duration) rediswire.Server { return c }
func (c *countingClient) About() rediswire.About                 { return rediswire.About{} }
func (c *countingClient) Advice() (set, now string)              { return "", "" }
