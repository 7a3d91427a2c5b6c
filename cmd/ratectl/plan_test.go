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

	"github.com/rategen/rategen/internal/testkit/limittest"
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
	tr.recordIn(tb, dir)
	return dir
}

func (tr traffic) recordIn(tb testing.TB, dir string) {
	tb.Helper()
	var now time.Time
	clock := func() time.Time { return now }
	recorder, err := raterecord.Files(dir, raterecord.WithSecret([]byte("a secret of the team")), raterecord.WithClock(clock),
		raterecord.WithBuffer(1<<17), raterecord.WithLabel(func(context.Context) string { return tr.label }))
	limittest.OK(tb, err)
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

// The page of a plan has charts, and nothing that a label could bring into it.
func TestPlanPage(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "plan.html")
	if code, _, errs := planned(t, "plan", "-max", orders.Name+"=5", "-html", page, some.record(t)); code != 0 {
		t.Fatal(errs)
	}
	html, err := os.ReadFile(page)
	limittest.OK(t, err)
	if text := string(html); strings.Contains(text, "<script") || !strings.Contains(text, "&lt;script&gt;") || strings.Count(text, "<svg") != 3 || strings.Contains(text, "http") {
		t.Errorf("the page:\n%.3000s", text)
	}
}

// All callers may need as much, and more than before.
func TestProposeEvenly(t *testing.T) {
	t.Parallel()
	even := traffic{callers: 20, calls: func(int) int { return 12 }, minutes: 2, rule: orders}.record(t)
	if _, out, _ := planned(t, "propose", orders.Name, even); !strings.Contains(out, "12   0") || strings.Contains(out, "needs more") {
		t.Error(out)
	}
}

// The commands of the page on choosing a limit work, and print what it shows.
func TestChoosing(t *testing.T) {
	page, err := os.ReadFile("../../docs/choosing.md")
	limittest.OK(t, err)
	dir := some.record(t)
	t.Chdir(filepath.Dir(dir))
	listing := `{"file":"a.go","line":3,"package":"orders","name":"orders.Service.Create","prefix":"p:","key":["#id"],` +
		`"max":"8","window":"1m0s","algorithm":"sliding-log","mode":"enforce"}`
	limittest.OK(t, os.WriteFile("rules.jsonl", []byte(listing), 0o600))
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
