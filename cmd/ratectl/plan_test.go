package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterecord"
)

// traffic is what callers do to the rule of a record.
type traffic struct {
	callers int
	calls   func(caller int) int // in each minute, evenly spaced
	minutes int
	label   string
	rule    runtime.Rule
}

var orders = runtime.Rule{Name: "orders.Service.Create", Window: time.Minute, Max: 10}

// record records traffic, and returns the directory of the record.
func (tr traffic) record(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "record")
	var now time.Time
	clock := func() time.Time { return now }
	recorder, err := raterecord.Files(dir, raterecord.WithSecret([]byte("a secret of the team")), raterecord.WithClock(clock),
		raterecord.WithBuffer(1<<17), raterecord.WithLabel(func(context.Context) string { return tr.label }))
	if err != nil {
		tb.Fatal(err)
	}
	limiter := runtime.New(runtime.NewMemoryStore(runtime.WithClock(clock)), runtime.WithObserver(recorder.Observer()),
		runtime.WithLogger(slog.New(slog.DiscardHandler)))
	began := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	limits := make([]runtime.Limit, tr.callers)
	for c := range limits {
		limits[c] = tr.rule.Limit(runtime.NewKey().AddString("customer" + strconv.Itoa(c)))
	}
	for minute := range tr.minutes {
		for second := range 60 {
			now = began.Add(time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)
			if tr.callers > 1000 {
				time.Sleep(5 * time.Millisecond) // for a benchmark: so much at a time would be dropped
			}
			for c := range limits {
				n := tr.calls(c)
				for range (second+1)*n/60 - second*n/60 {
					_, _ = limiter.Take(context.Background(), limits[c])
				}
			}
		}
	}
	_ = limiter.Close()
	if err := recorder.Close(); err != nil || recorder.Dropped() > 0 {
		tb.Fatalf("%v, %d dropped", err, recorder.Dropped())
	}
	return dir
}

// some has 99 callers of 8 calls a minute, and one of 40.
var some = traffic{callers: 100, minutes: 5, rule: orders, label: `<script>alert("plan")</script>`, calls: func(c int) int {
	if c == 0 {
		return 40
	}
	return 8
}}

func planned(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr strings.Builder
	p := &program{in: strings.NewReader(""), out: &stdout, err: &stderr, getenv: func(string) string { return "" }}
	code = p.run(context.Background(), args)
	return code, stdout.String(), stderr.String()
}

// A plan says whom a change would refuse, and fails if that is more than somebody allows.
func TestPlan(t *testing.T) {
	dir := some.record(t)
	page := filepath.Join(t.TempDir(), "plan.html")
	code, out, errs := planned(t, "plan", "-max", orders.Name+"=5", "-html", page, "-max-newly-refused", "0.1%", dir)
	if code != 1 || !strings.Contains(errs, "1510 of 4160 calls, 36.3%, are newly refused: more than 0.1%") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"100% of them decided as recorded", "10 per 1m0s, sliding-log", "5 per 1m0s, sliding-log", "100 of 100"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(html); strings.Contains(text, "<script") || !strings.Contains(text, "&lt;script&gt;") || strings.Count(text, "<svg") != 3 || strings.Contains(text, "http") {
		t.Errorf("the page:\n%.3000s", text)
	}
	code, out, errs = planned(t, "plan", "-o", "json", "-max-newly-refused", "0", dir)
	if code != 0 || !strings.Contains(out, `"newly_refused":0`) || !strings.Contains(out, `"decided_otherwise":0`) {
		t.Errorf("nothing is changed, exit %d: %s%s", code, out, errs)
	}
	if code, out, _ = planned(t, "plan", "-algorithm", orders.Name+"=token-bucket", "-burst", orders.Name+"=40", dir); code != 0 || !strings.Contains(out, "burst 40, token-bucket") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A listing that the environment names for other commands is not changed source.
func TestPlanAsksTheCommandLine(t *testing.T) {
	dir := some.record(t)
	b := &bench{env: map[string]string{"RATECTL_RULES": filepath.Join(t.TempDir(), "none.jsonl")}}
	b.run("plan", "-max", orders.Name+"=5", dir).wants(t, 0, `.*1510 are newly refused.*`, "")
	b.run("propose", orders.Name, dir).wants(t, 0, `REFUSES.*`, "")
	b.run("plan", "-rules", b.env["RATECTL_RULES"], dir).wants(t, 2, "", `.*no such file.*`)
}

// A change comes from a listing of the source, or a file of overrides.
func TestPlanSources(t *testing.T) {
	dir := some.record(t)
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	listing := func(name, limit string) string {
		return write("rules.jsonl", `{"file":"a.go","line":3,"package":"m","name":"`+name+`","prefix":"p:","key":["#id"],"max":"`+limit+
			`","window":"1m0s","algorithm":"sliding-log","mode":"enforce"}`+"\n")
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"listing":      {[]string{"-rules", listing(orders.Name, "40")}, "40 per 1m0s"},
		"by each call": {[]string{"-rules", listing(orders.Name, "#plan.Max")}, "0 are newly refused"},
		"gone":         {[]string{"-rules", listing("other", "5")}, "not declared any more refuse nobody: orders.Service.Create"},
		"unmet":        {[]string{"-rules", listing("other", "5")}, "no call of these rules, so nothing is known of them: other"},
		"overrides":    {[]string{"-changed", write("o.json", `{"rules":{"orders.Service.Create":{"max":5}}}`)}, "1510 are newly refused"},
		"mode":         {[]string{"-mode", orders.Name + "=shadow"}, "10 per 1m0s, sliding-log, shadow"},
	} {
		code, out, errs := planned(t, append(append([]string{"plan"}, c.args...), dir)...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit %d, no %q\n%s%s", name, code, c.want, out, errs)
		}
	}
	for name, args := range map[string][]string{
		"no rule": {"-max", "5"}, "no number": {"-max", orders.Name + "=many"}, "share": {"-max-newly-refused", "200%"},
		"unknown rule": {"-max", "orders.Service.Crate=5"}, "no such max": {"-max", orders.Name + "=-1"}, "algorithm": {"-algorithm", orders.Name + "=leaky"}, "no value": {"-max", orders.Name + "="},
	} {
		if code, _, errs := planned(t, append(append([]string{"plan"}, args...), dir)...); code != wrongUsage || errs == "" {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
	const unfit = "ratectl: orders.Service.Create at max=10: invalid rate limit: rule \"orders.Service.Create\": window 0s is not between 1ms and 366 days\n"
	if _, _, errs := planned(t, "plan", "-window", orders.Name+"=0s", dir); errs != unfit {
		t.Errorf("got %q", errs)
	}
	for name, path := range map[string]string{"missing": filepath.Join(dir, "none"), "empty": t.TempDir(), "no record": write("x.ratelog", "hello")} {
		if code, _, errs := planned(t, "plan", path); code != wrongUsage || errs == "" {
			t.Errorf("%s: exit %d, %s", name, code, errs)
		}
	}
}

// A proposal finds the limit that is known to fit.
func TestPropose(t *testing.T) {
	dir := some.record(t)
	code, out, errs := planned(t, "propose", orders.Name, dir)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{ // 40 and 8 calls in each minute, evenly spaced
		"0% of the calls      sliding-log  40   0      0 ", "1% of the callers    sliding-log  8    160    1 ", "it refuses 40 of its 200", "4160 calls of 100 callers",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	even := traffic{callers: 20, calls: func(int) int { return 12 }, minutes: 2, rule: orders}.record(t)
	if _, out, _ := planned(t, "propose", orders.Name, even); !strings.Contains(out, "12   0") || strings.Contains(out, "needs more") {
		t.Errorf("all need as much, and more than before:\n%s", out)
	}
	code, out, errs = planned(t, "propose", "-compare", orders.Name, dir)
	for _, want := range []string{"sliding-log      40 ", "sliding-counter  41 ", "fixed-window     40 ", "token-bucket     34 ", "leaky-bucket     34 "} {
		if code != done || !strings.Contains(out, "0% of the calls      "+want) {
			t.Errorf("it does not say %q, exit %d: %s\n%s", want, code, errs, out)
		}
	}
	gone := filepath.Join(t.TempDir(), "gone.json")
	if err := os.WriteFile(gone, []byte(`{"rules":{"orders.Service.Create":{"enabled":false}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-changed", gone, orders.Name, dir}, {"orders.Service.Crate", dir}, {"-max", orders.Name + "=3", orders.Name, dir}} {
		if code, _, errs := planned(t, append([]string{"propose"}, args...)...); code != wrongUsage || errs == "" {
			t.Errorf("exit %d: %s", code, errs)
		}
	}
}

// The commands of the page on choosing a limit work, and print what it shows.
func TestChoosing(t *testing.T) {
	page, err := os.ReadFile("../../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := some.record(t)
	t.Chdir(filepath.Dir(dir))
	listing := `{"file":"a.go","line":3,"package":"orders","name":"orders.Service.Create","prefix":"p:","key":["#id"],` +
		`"max":"8","window":"1m0s","algorithm":"sliding-log","mode":"enforce"}`
	if err := os.WriteFile("rules.jsonl", []byte(listing), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	commands := 0
	for i, part := range strings.Split(string(page), "```") {
		if i%2 == 0 || !strings.HasPrefix(part, "sh\n") {
			continue
		}
		for line := range strings.Lines(part) {
			args := strings.Fields(line)
			if len(args) == 0 || args[0] != "ratectl" {
				continue
			}
			commands++
			want := done
			if strings.Contains(line, "-max-newly-refused") {
				want = failed
			}
			code, out, errs := planned(t, args[1:]...)
			if code != want {
				t.Errorf("%sexit %d: %s", line, code, errs)
			}
			printed.WriteString(out + errs)
		}
	}
	if commands < 5 {
		t.Errorf("%d commands", commands)
	}
	for i, part := range strings.Split(string(page), "```") {
		if i%2 == 0 || !strings.HasPrefix(part, "text\n") {
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(part, "text\n")) {
			if !strings.Contains(printed.String(), line) {
				t.Errorf("no command prints %q:\n%s", line, printed.String())
			}
		}
	}
	if html, err := os.ReadFile("plan.html"); err != nil || !strings.Contains(string(html), "<svg") {
		t.Error("no page", err)
	}
}

// BenchmarkPlan replays a million decisions.
func BenchmarkPlan(b *testing.B) {
	tr := some
	tr.callers, tr.minutes, tr.calls, tr.label = 10_000, 10, func(c int) int { return 10 }, ""
	dir := tr.record(b)
	b.ReportAllocs()
	for b.Loop() {
		p := &program{in: strings.NewReader(""), out: io.Discard, err: os.Stderr, getenv: func(string) string { return "" }}
		if code := p.run(context.Background(), []string{"plan", "-max", orders.Name + "=5", dir}); code != 0 {
			b.Fatal(code)
		}
	}
}
