package crossing

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	testdefect "github.com/rategen/rategen/internal/testkit/defect"
	"github.com/rategen/rategen/internal/testkit/effort"
)

// A defect was in the engine once, and is put back by an edit of a source file.
type defect struct {
	name     string
	file     string // in runtime
	old, new string
	test     string // that finds it
	checks   string // programs that it has for that, at most
	promise  string // that does not hold then
}

func (d defect) edit() testdefect.Edit {
	return testdefect.Edit{File: filepath.Join("..", d.file), Old: d.old, New: d.new}
}

// defects are what no test of a single feature found: each is where two features meet.
var defects = []defect{
	{"a late refund of a bucket gives back what has drained", "internal/memstate/bucket.go",
		"return min(back, most)", "return back", "TestMemory", "20000", "a bucket admits"},
	{"who leaves a line gives others' turns away", "internal/memstate/bucket.go",
		"|| behind < 0 || float64(", "|| behind < -1<<62 && float64(", "TestMemory", "20000", "turns are window/max apart"},
	{"a shadow limit whose key is forbidden leaves its call undecided", "internal/script/again.go",
		"n > 0 && n < len(e.calls[i].Charges)", "n < 0", "TestRedis", "25", "the store decides while it can"},
	{"a shadow limit on another one's key is an error", "internal/decide/charges.go",
		"e.sharedKey(charge.Plan, o.Plan)\n\t\t\treturn nil", "return o", "TestMemory", "20000", "a valid call has no other error"},
	{"a call waits by what held when it came", "internal/decide/run.go",
		"} else if err := e.Plan(ctx, c, limits); err != nil {", "} else if err := ctx.Err(); err != nil {", "TestMemory", "50000", "nobody is refused who has room|no more permits|no window"},
	{"takes and settlements share no trip", "internal/redis/batch.go",
		"room = w.work\n\t}", "room = w.work\n\t} else if w.op != b.groups[0].op {\n\t\treturn false\n\t}", "TestRedis", "25", "takes and settlements"},
	{"calls that are taken together are not refused by what is remembered", "internal/decide/ask.go",
		"if call.Err != nil && ctx.Err() == nil {", "if err != nil && ctx.Err() == nil {", "TestCluster", "250", "a refusal holds"},
	{"a call is charged to the period after its own", "internal/ledger/permit_renewal.go",
		"case m.reserved() && start >= m.periodEnd:", "case m.reserved() && start < 0:", "TestMemory", "20000", "nobody is refused who has room"},
	{"no share is told of a period with reservations", "internal/memstate/past.go",
		"if written && c.Tells > 0 {", "if written && c.Tells > 0 && e.kind != reservedKind {", "TestMemory", "20000", "a share that is used is told"},
	{"another limiter settles a decision", "decision.go",
		"d.owner != l", "false", "TestMemory", "20000", "nothing is held|settled once|nobody is refused"},
	{"a call overtakes what its process has given back", "internal/redis/returns.go",
		"if !b.allow(w) {", "if !b.allow(w) || true {", "TestWire", "2000", "nobody is refused who has room"},
	{"a remembered refusal is told from when Redis was asked", "internal/recall/recall.go",
		"certainFit: answered + c.RetryAfter", "certainFit: asked + c.RetryAfter", "TestWire", "4000", "a call alone is admitted after RetryAfter"},
	{"a call of cost 0 passes blocks and holds", "internal/decide/charges.go",
		"limit.Cost == 0 && !p.RefusesAll()", "limit.Cost == 0", "TestMemory", "20000", "nobody is admitted"},
	{"a block for a while ends the one before", "override/change.go",
		"if ends[name].IsZero() {", "if ends[name].IsZero() && name != \"block\" {", "TestEdits", "2000", "overrides are what edits have made of them"},
	{"a debt is computed from the next caller's max", "internal/memstate/reserved.go",
		"if clock < k.debtDue {\n\t\t\tk.carriedDebt, k.carriedDue = k.debt, k.debtDue", "if clock < k.end+c.Window {\n\t\t\tk.carriedDebt, k.carriedDue = max(0, k.used-c.Max), k.end+c.Window", "TestMemory", "20000", "a period holds no more|a period refuses"},
	{"a call with another zone ends a period", "internal/memstate/period.go",
		"p.dropTime > 0 && clock < p.bound {\n\t\tv.time", "p.dropTime > 0 && clock < p.bound && (p.bound == c.Param || p.bound == c.More) {\n\t\tv.time", "TestMemory", "20000", "a period holds no more"},
	{"a share is told again to a caller of another zone", "internal/memstate/past.go",
		"if e.bound != from {\n\t\te.forget", "if e.bound != from || e.bound != c.Param {\n\t\te.forget", "TestMemory", "20000", "a share is told once a period, always"},
	{"of many keys that pass a share at once the first ones are told", "internal/script/shares.go",
		"for ; len(r.numbers) > 0; r.numbers = r.numbers[each:] {", "for n := 0; len(r.numbers) > 0 && n < 32; n, r.numbers = n+1, r.numbers[each:] {", "TestWire", "4000", "many keys that pass a share"},
	{"who waits learns of its own process's room from the store", "internal/ledger/ledger.go",
		"if c.Cost < 0 {\n\t\tl.Lines", "if c.Cost < -1000 {\n\t\tl.Lines", "TestMemory", "20000", "who waits is woken"},
	{"two rules of one start have other terms", "register.go",
		"if o := t.byStart[start]; o != nil {", "if o := t.byStart[start]; o != nil && false {", "TestMemory", "20000", "rules of one start or name"},
	{"calls without a key go on where those without Redis do", "internal/decide/charges.go",
		"if p.Rule.Invalid == rule.InvalidShare && p.Max > 0 {", "if p.Fail == rule.FailOpen {\n\t\treturn false, nil\n\t}\n\tif p.Rule.Invalid == rule.InvalidShare && p.Max > 0 {", "TestMemory", "20000", "share one budget|a call without a key is refused"},
	{"a message that is dearer than a log takes at once fails", "internal/ledger/meter_limits.go",
		"p == nil || w.Cost <= p.Most ||", "p == nil || w.Cost > 0 ||", "TestMemory", "20000", "a valid call has no other error"},
	{"a limit in shadow mode counts parts of a message that it has no room for", "internal/ledger/meter_limits.go",
		"if w.free && w.At == 0 {", "if w.free && w.At < 0 {", "TestMemory", "50000", "no window holds more"},
	{"a share is compared with the mean in place of the heaviest", "internal/memstate/divided.go",
		"k.heaviest = decayed(k.top-k.zero, k.unit)", "for _, r := range t.scores.byName {\n\t\t\tk.heaviest += decayed(r.score-k.zero, k.unit) / float64(t.scores.count())\n\t\t}", "TestMemory", "20000", "nobody is refused who has room"},
	{"a fixed window begins anew with each event", "internal/memstate/window.go",
		"w.time, w.count = v.bound, min", "w.time, w.count = v.time, min", "TestMemory", "20000", "a period refuses nobody|a refusal by a period|nobody is refused who has room"},
	{"a fixed window ends before it is over", "internal/memstate/window.go",
		"clock < w.time+c.Window {\n\t\tv.time", "clock < w.time+c.Window-c.Window/8 {\n\t\tv.time", "TestMemory", "20000", "a fixed window holds no more"},
	{"a process none of whose calls waits any more keeps its place in line", "internal/memstate/permit_line.go",
		"(c.Param > 0 || c.Cost <= c.Max-(v.end-v.count)-v.before)", "(c.Cost <= c.Max-(v.end-v.count)-v.before)", "TestMemory", "20000", "processes take turns|no permits stand unused"},
	{"calls of a process pass others for as long as any of them waits", "internal/ledger/line.go",
		"if n.passEnd <= now {", "if n.passEnd <= now || true {", "TestMemory", "20000", "processes take turns"},
	{"what a server has forgotten returns behind what is taken", "internal/script/again.go",
		"{ e.pair, settles.pair = settles, e }", "{}", "TestWire", "4000", "nobody is refused who has room"},
	{"who leaves before an answer keeps a place in line", "internal/redis/waiter.go",
		"|| all && stands)", "|| all && stands && false)", "TestWire", "4000", "processes take turns|no permits stand unused"},
	{"permits that come back while a call asks for some wake it no more", "internal/decide/wait.go",
		"return len(c.claims) == 0 &&", "return len(c.claims) < 0 &&", "TestWire", "4000", "processes take turns|no permits stand unused"},
}

var control = flag.Bool("control", false, "put defects back, and want each to be found")

// TestControl puts defects back, one after the other, and wants the random test to find
// each. It logs how many programs that took.
func TestControl(t *testing.T) {
	if !*control {
		t.Skip("takes half an hour: run it with -control")
	}
	failed := regexp.MustCompile(`(?s)(?:failed after \d+ tests: |Original traceback \()([^\n]*).*?program (\d+):`)
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			binary := d.edit().Compile(t)
			begin := time.Now()
			cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+d.test+"$", "-test.parallel=12", "-rapid.nofailfile", "-rapid.shrinktime=1ms", "-rapid.checks="+d.checks, "-promise="+d.promise)
			cmd.Env = append(os.Environ(), effort.Variable+"=1")
			out, err := cmd.CombinedOutput()
			found := failed.FindStringSubmatch(string(out))
			if err == nil || found == nil {
				t.Fatalf("%s passes %s programs: %v\n%.3000s", d.test, d.checks, err, out)
			}
			t.Logf("found after %s programs and %.1f s: %.300s", found[2], time.Since(begin).Seconds(), found[1])
		})
	}
}

// TestDefects wants each defect to be an edit of the engine as it is.
func TestDefects(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) { d.edit().Source(t) })
	}
}
