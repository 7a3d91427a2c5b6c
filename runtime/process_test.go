package runtime_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// testProcesses has a limiter report what it has in force and whom it has refused, and wants to read it until it is
// closed. The documents of limiters have what else is reported, and when.
func testProcesses(t *testing.T, client redis.UniversalClient, _ []*redistest.Server) {
	ok(t, client.HSet(t.Context(), "limits", "r", `{"max":2}`).Err())
	source := override.Redis(client, "limits")
	store := runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second))
	l := runtime.New(store, quiet, runtime.WithNamespace("shop"), runtime.WithOverrides(source, time.Hour))
	r := &runtime.Rule{Name: "r", Window: time.Hour, Max: 5}
	l.Register(r)
	passing(t, l, r.Limit(key("ada")), 3)
	l.Report()
	l.Report()
	read := func() ([]bridge.Process, []bridge.RefusedMinute) {
		found, err := bridge.StoreOf(store).Processes(t.Context(), "shop")
		refused, err2 := bridge.StoreOf(store).RefusedMinutes(t.Context(), "shop", time.Now().Add(-time.Hour))
		ok(t, errors.Join(err, err2))
		return found, refused
	}
	found, refused := read()
	want, err := source.Overrides(t.Context())
	ok(t, err)
	if len(found) != 1 || found[0].Version != want.Version() || found[0].Overrides != "redis:limits" || found[0].Silent || found[0].Behind.Abs() > time.Minute {
		t.Fatalf("found %+v", found)
	}
	same(t, "rules", []bridge.ProcessRule{{Name: "r", Prefix: "rate_limit:r:", Terms: "5 in 1h0m0s, sliding-log", Called: true}}, found[0].Rules)
	if len(refused) != 1 || refused[0].Rule != "r" || refused[0].Key != "ada" || refused[0].Count != 1 {
		t.Errorf("refused %+v", refused)
	}
	const prefix = "shop:rate_limit:{processes}:"
	for key, most := range map[string]time.Duration{"0": 4 * time.Minute, "1": 4 * time.Minute, "rules:" + found[0].Digest: 4 * time.Minute, "refused": bridge.KeepRefusals} {
		if left := client.PTTL(t.Context(), prefix+key).Val(); left == -1 || left > most {
			t.Errorf("%s is kept for %v", key, left)
		}
	}
	ok(t, l.Close())
	if found, _ := read(); len(found) > 0 {
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

// TestNamespacesUnseen has a process that may not look for namespaces like its own: it does not try again.
func TestNamespacesUnseen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := runtime.New(runtime.NewRedisStore(server.ClientAs(t, "~shop:*", "+@all"), runtime.WithTimeout(5*time.Second)), quiet, runtime.WithNamespace("shop"))
	l.Register(&runtime.Rule{Name: "r", Window: 10 * time.Second, Max: 5})
	l.Report()
	client := server.Client(t)
	ok(t, client.Do(t.Context(), "ACL", "LOG", "RESET").Err())
	l.Report()
	refused, err := client.Do(t.Context(), "ACL", "LOG").Slice()
	ok(t, errors.Join(err, l.Close()))
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
