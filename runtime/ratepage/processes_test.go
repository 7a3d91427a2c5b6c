package ratepage

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// TestProcesses wants a page to say in which processes of all its hash is in force.
func TestProcesses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	editor := override.NewEditor(client, "limits")
	page := New(WithActions(func(*http.Request, Action) (string, error) { return "ada", nil }, editor), WithKeys())
	for range 2 { // in one namespace
		l := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()))
		defer l.Close()
		l.Register(&runtime.Rule{Name: "r", Window: time.Minute, Max: 5})
	}
	version, err := editor.Version(t.Context())
	limittest.OK(t, err)
	report := func(name, hash, version string) {
		text, err := json.Marshal(bridge.Process{Name: name, At: time.Now(), Overrides: hash, Version: version, Build: "v1", Findings: []bridge.FindingGroup{{Code: "x", Count: 1}, {Code: "y", Count: 5, Until: time.Now()}}})
		if err == nil {
			err = errors.Join(client.HSet(t.Context(), "rate_limit:{processes}:0", name, text).Err(),
				client.HSet(t.Context(), "rate_limit:{processes}:calls", name, `{"seconds":2,"decided":[20,2,0,0],"asked":22,"keys":[{"rule":"r","key":"annabel","count":20}]}`).Err(),
				client.ZAdd(t.Context(), "rate_limit:{processes}:alive", redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()), Member: name}).Err())
		}
		limittest.OK(t, err)
	}
	look := func() processesView {
		page.processesCache.forget()
		v := decoded[processesView](t, ask(page, "GET", "/api/processes", ""))
		for i := range v.Machines {
			v.Machines[i].At = time.Time{}
		}
		return v
	}
	check := func(want processesView) {
		t.Helper()
		want.Hash = "redis:limits"
		for i := range want.Machines {
			want.Machines[i].Build, want.Machines[i].Count, want.Machines[i].Findings = "v1", 1, 1
		}
		if n := float64(want.Count); n > 0 {
			want.Calls = operate.Calls{Processes: want.Count, Decided: [4]float64{10 * n, n, 0, 0}, Asked: 11 * n, Keys: []operate.HotKey{{Rule: "r", Key: "a•••l", PerSecond: 10 * n, Share: 10.0 / 11, Processes: want.Count, Remedy: "lease=1s"}}}
		}
		if diff := cmp.Diff(want, look()); diff != "" {
			t.Error(diff)
		}
	}
	check(processesView{Machines: []machineView{}})
	report("a", "redis:other", version)
	check(processesView{Machines: []machineView{{Host: "a", Others: []string{"redis:other"}}}, Count: 1})
	report("b", "redis:limits", version)
	report("c", "redis:limits", "old")
	check(processesView{Count: 3, Follow: 2, InForce: 1, Machines: []machineView{
		{Host: "c", Lag: 1}, {Host: "a", Others: []string{"redis:other"}}, {Host: "b", InForce: 1},
	}})
	limittest.OK(t, client.HSet(t.Context(), "limits", "r", `{"max":7}`).Err())
	if v := look(); v.InForce != 0 || v.Follow != 2 {
		t.Errorf("%+v", v)
	}
	if err := client.HSet(t.Context(), "limits", "r", `{`).Err(); err != nil { // rejected
		t.Fatal(err)
	}
	if v := look(); v.InForce != 0 || v.Follow != 2 {
		t.Errorf("%+v", v)
	}
	for digest, most := range map[string]string{"x": "5", "y": "6"} { // two versions at once
		text, err := json.Marshal(bridge.Process{Name: "version-" + digest, At: time.Now(), Digest: digest})
		limittest.OK(t, errors.Join(err, client.HSet(t.Context(), "rate_limit:{processes}:0", "version-"+digest, text).Err(),
			client.Set(t.Context(), "rate_limit:{processes}:rules:"+digest, `[{"name":"r","terms":"`+most+` in 1m0s, sliding-log"}]`, time.Minute).Err(),
			client.ZAdd(t.Context(), "rate_limit:{processes}:alive", redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()), Member: "version-" + digest}).Err()))
	}
	if v := look(); len(v.Differ) != 1 || v.Differ[0].Limits != "5 or 6 in 1m0s" {
		t.Errorf("%+v", v.Differ)
	}
	if v := decoded[keyView](t, ask(page, "GET", "/api/keys?rule=r&key=x", "")); v.Limits[0].Differs != "5 or 6 in 1m0s" {
		t.Errorf("%+v", v)
	}
	limittest.OK(t, client.HDel(t.Context(), "rate_limit:{processes}:0", "version-x", "version-y").Err())
	for i := range 60 {
		report(fmt.Sprint("p-", i), "", "")
	}
	if v := look(); v.Count != 63 || len(v.Machines) != maxMachines || v.More != 13 {
		t.Errorf("%d, %d, %d", v.Count, len(v.Machines), v.More)
	}
	if v := decoded[processesView](t, ask(New(), "GET", "/api/processes", "")); v.Count != 0 || v.Hash != "" {
		t.Errorf("%+v", v)
	}
}

// TestRefusedSpans wants a page to say whom all processes have refused, as far back as it is asked.
func TestRefusedSpans(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	now := time.Now().Unix() / 60
	tell := func(ago int64, lines ...string) {
		text := fmt.Sprint(now-ago, "\n", strings.Join(lines, "\n"), "\n")
		limittest.OK(t, client.ZAdd(t.Context(), "rate_limit:{processes}:refused", redis.Z{Score: float64(now - ago), Member: text}).Err())
	}
	tell(5, "r\tannabel\t10", "\t3")
	tell(9, "r\tannabel\t1")
	tell(100, "r\tannabel\t5", "r\tbob\t90")
	for i := range 30 {
		tell(int64(1000+i), fmt.Sprint("s\tkey-", i, "\t1"))
	}
	open := func(opts ...Option) *Page {
		page := New(opts...)
		for range 2 { // in one namespace
			l := runtime.New(runtime.NewRedisStore(client), runtime.WithLogger(quiet), runtime.WithObserver(page.Observer()))
			t.Cleanup(func() { _ = l.Close() })
		}
		return page
	}
	minute := func(ago int64) time.Time { return time.Unix(60*(now-ago), 0) }
	page := open(WithPlainKeys())
	look := func(since string) refusedView {
		return decoded[refusedView](t, ask(page, "GET", "/api/refused?since="+since, ""))
	}
	same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
	if diff := cmp.Diff(refusedView{Keys: []refusedKeyView{{"r", "annabel", 11, minute(9), minute(4)}}, Others: 3}, look("1h"), same); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(refusedView{Keys: []refusedKeyView{{"r", "bob", 90, minute(100), minute(99)}, {"r", "annabel", 16, minute(100), minute(4)}}, Others: 3}, look("3h"), same); diff != "" {
		t.Error(diff)
	}
	if v := look("24h"); len(v.Keys) != maxRefused || v.Others != 3+32-maxRefused {
		t.Errorf("%d keys, %d others", len(v.Keys), v.Others)
	}
	if w := ask(page, "GET", "/api/refused?since=2h", ""); w.Code != http.StatusBadRequest {
		t.Error(w.Code, w.Body)
	}
	page = open(WithKeys())
	if v := look("1h"); len(v.Keys) != 1 || v.Keys[0].Key != "a•••l" {
		t.Errorf("%+v", v)
	}
	page = open()
	if v := look("1h"); len(v.Keys) != 0 || v.Others != 0 {
		t.Errorf("%+v", v)
	}
}
