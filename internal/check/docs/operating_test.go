package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

var (
	// operated finds the commands of a page in its order, and the alert whose commands need a mistake.
	operated = regexp.MustCompile("(?m)^(?:cd|export|ratectl) .*$|`ratectl [^`|]+`|^### RategenOverridesRejected$")
	// incidents are what TestIncidents of cmd/ratectl has happen.
	incidents = regexp.MustCompile("(?s)<!-- incidents -->.*<!-- /incidents -->")
	started   = regexp.MustCompile(`^cd (examples/\w+) && REDIS_ADDR=\S+ go run \.(.*)$`)
)

// says is what each command of the pages prints of the example, in the order of the pages, where a command comes
// again.
var says = [][2]string{
	{"ratectl find ada", `login.user +ada +blocked +5/5 +\S+ +\S+ +\d+, last \S+ +-`},
	{"ratectl refused -since 3h", `(?s)orders.Service.Create +\w+ +\d+ +\S+Z.*login.user +ada +\d+ +\S+Z.*[▁-█] an hour from \S+Z on, of up to \d+`},
	{"ratectl refused -since 3h ada", `login.user +ada +\d+ +\S+Z`},
	{"ratectl top", `(?s)RULE +BLOCKED +REFUSED +NEAR +UNKNOWN +KEYS +WORST.*login.user +1 +0 +\d+ +0 +\d+ +ada`},
	{"ratectl inspect login.user ada", `(?s)state +blocked, by the rule itself: ratectl reset ends that.*limit +5, 0 left`},
	{"ratectl reset login.user ada", `ada of rule login.user is reset; it was blocked, with 5 used`},
	{"ratectl override set orders.Service.Create -keys acme -max 200 -for 2h", `acme of rule orders.Service.Create: the override is \{"max":200,"until":"\S+Z"\}; there was none; to undo: ratectl undo \d+\n1 of the 1 processes`},
	{"ratectl allow orders.Service.Create acme -for 2h", `acme of rule orders.Service.Create: the override is \{"allow":true,.*"max":200,.*\}; it was \{"max":200`},
	{"ratectl override set orders.Service.Create -max 12", `rule orders.Service.Create: the override is \{"max":12\}; there was none`},
	{"ratectl keys orders.Service.Search -state near,refused", `KEY +STATE +USED +RETRY +RESET(\n\S+ +(near|refused) +\d+/\d+ .*)*`},
	{"ratectl block login.address -parts 2001:db8::/56 -for 1h", `2001%3Adb8%3A%3A/56 of rule login.address: the override is \{"block":true,"until":"\S+Z"\}; there was none`},
	{"ratectl override ls", `(?s)orders.Service.Create +- +\{"max":12\} +-.*orders.Service.Create +acme .*in force in 1 of the 1 processes`},
	{"ratectl shadow on orders.Service.Create", `rule orders.Service.Create: the override is \{"max":12,"mode":"shadow"\}; it was \{"max":12\}`},
	{"ratectl keys orders.Service.Create", `KEY +STATE +USED +RETRY +RESET\n(\S+ +\w+( \(shadow\))? .*\n)+`},
	{"ratectl shadow off orders.Service.Create", `rule orders.Service.Create: the override is \{"max":12,"mode":"enforce"\}`},
	{"ratectl override rm orders.Service.Create", `rule orders.Service.Create: the override is gone; it was \{"max":12`},
	{"ratectl override set '*' -mode shadow", `(?s)RULE +BEFORE +AFTER.*login.user +- +\{"mode":"shadow"\}.*to undo all of it: ratectl undo \d+`},
	{"ratectl override set '*' -enabled false", `all limits: the override is \{"enabled":false\}; there was none`},
	{"ratectl memory", `(?s)KEYS +BYTES +ENDLESS +HEALED +RULE\n.*\d+ +\d+ +0 +0 +orders.Service.Create`},
	{"ratectl fix-expiry", `(?s)KEYS +BYTES +ENDLESS +HEALED +RULE\n.*orders.Service.Create`},
	{"ratectl doctor", `(?s)CHECK +STATE +WHERE +SAYS +REMEDY.*(are in force in [01] of the 1 .*writes +ok|writes +ok .*are in force in [01] of the 1 ).*orphans +ok `},
	{"ratectl export > counts.jsonl", `^$`},
	{"ratectl import -redis new.internal:6379 counts.jsonl", `(?s)RULE +IMPORTED +KEPT +LAPSED +BAD.*\(overrides\) +[1-9].*\(history\) +[1-9].*login.address +1 `},
	{"ratectl keys RULE -state refused,blocked", `KEY +STATE`},
	{"ratectl block RULE KEY", `2001%3Adb8%3A%3A/56 of rule login.address: the override is \{"block":true`},
	{"ratectl keys RULE -state near", `KEY +STATE`},
	{"ratectl override ls", `field "login.user": line 1: max is text: write a whole number such as 10`},
	{"ratectl override rm login.user", `rule login.user: the override is gone; it was broken; it is not written back`},
	{"ratectl inspect RULE KEY", `(?s)rule +login.address, .*key +2001%3Adb8%3A%3A/56\nstate +`},
	{"ratectl COMMAND -h", `Usage: ratectl top \[flags\]`},
	{"ratectl help man", `\.TH RATECTL 1`},
	{"ratectl rules -o json", `\{"name":"login.user",.*"prefix":`},
	{"ratectl inspect login.address 2001%3Adb8%3A%3A/56", `key +2001%3Adb8%3A%3A/56`},
	{"ratectl inspect -parts login.address 2001:db8::/56", `key +2001%3Adb8%3A%3A/56`},
	{"ratectl override set orders.Service.Create -keys acme -max 1000", `acme of rule orders.Service.Create: the override is .*"max":1000`},
	{`ratectl override set orders.Service.Create -keys acme -max 2000 -for 2h -m "ticket 7"`, `acme of rule orders.Service.Create: the override is .*"max":2000,.*"max_until":"\S+Z"`},
	{"ratectl history", `(?s)CHANGE +AT +WHO +OF +BEFORE +AFTER +WHY\n\d+ .* ada +acme of rule orders.Service.Create .*"max":2000.* ticket 7\n`},
	{"ratectl undo", `acme of rule orders.Service.Create: the override is .*"max":1000.* again; \d+, by ada, had made it .*"max":2000`},
}

// asked is the shell's ratectl: it says yes where the command asks, since nobody is there to be asked.
const asked = `ratectl() {
	local code=0
	"$bin/ratectl" "$@" </dev/null 2>&1 || code=$?
	if [ $code = 4 ]; then "$bin/ratectl" "$@" -yes; else return $code; fi
}
`

// reported waits until the example has told its Redis what it has in force.
const reported = `for _ in {1..60}; do ratectl override ls | grep -q 'no process' || break; sleep 1; done
`

// inForce waits until the example has told of the last change too, which takes it two seconds. A
// person takes longer between two commands.
const inForce = `for _ in {1..60}; do ratectl override ls | grep -q 'in force in 1 of the 1' && break; sleep 1; done
`

// TestOperatingPages starts the example that docs/operating.md starts, and runs the commands of
// that page and of docs/ratectl.md in their order, in one shell. Each succeeds, so it names a rule
// and a caller of that example, and what the pages show is what the commands print.
func TestOperatingPages(t *testing.T) {
	if !effort.Full() {
		t.Skip("builds two modules with their dependencies: in a full run only")
	}
	server, other := redistest.Start(t), redistest.Start(t)
	dir := t.TempDir()
	build(t, "cmd/ratectl", filepath.Join(dir, "ratectl"))
	here := strings.NewReplacer("localhost:6379", server.Addr, "new.internal:6379", other.Addr,
		"127.0.0.1:8080", "127.0.0.1:"+freePort(t),
		" RULE", " login.address", " KEY", " 2001%3Adb8%3A%3A/56", " COMMAND", " top")
	script, commands := "trap 'kill $(jobs -p)' EXIT\n"+asked, 0
	for _, path := range []string{"docs/operating.md", "docs/ratectl.md"} {
		broken := false
		for _, line := range operated.FindAllString(incidents.ReplaceAllString(content(t, path), ""), -1) {
			run := strings.Trim(line, "`")
			if example := started.FindStringSubmatch(run); example != nil {
				build(t, example[1], filepath.Join(dir, "example"))
				run = "REDIS_ADDR=localhost:6379 $bin/example -listen 127.0.0.1:8080" + example[2] + " >$bin/log 2>&1 &"
			}
			if strings.HasPrefix(run, "ratectl ") && !strings.Contains(script, reported) {
				script += reported
			}
			if run == "ratectl override ls" {
				script += inForce
			}
			if strings.HasPrefix(run, "#") {
				broken = true
				run = `redis-cli -u redis://localhost:6379 HSET operated:limits login.user '{"max": "many"}'`
			} else if broken { // the first command shows the mistake
				broken = false
				run = "! " + run
			}
			commands++
			script += "cat <<'END'\n$ " + line + "\nEND\n" + here.Replace(run) + "\n[ $? = 0 ] || cat <<'END'\nFAILS: " + path + ": " + line + "\nEND\n"
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "bin="+dir, "RATECTL_WHO=ada")
	out, err := cmd.CombinedOutput()
	printed := "\n" + unvarying(string(out))
	if err != nil || commands < 30 || strings.Contains(printed, "FAILS: ") {
		t.Fatalf("%d commands, %v\n%s", commands, err, out)
	}
	compared := len(says)
	_, rest, _ := strings.Cut(string(out), "\n$ ratectl ")
	for part := range strings.SplitSeq("ratectl "+rest, "\n$ ") {
		command, printed, _ := strings.Cut(part, "\n")
		if command = strings.Trim(command, "`"); !strings.HasPrefix(command, "ratectl ") {
			continue
		}
		if len(says) == 0 || says[0][0] != command {
			t.Fatalf("%s: nobody says what it prints here: %s", command, printed)
		}
		if want := says[0][1]; !regexp.MustCompile(want).MatchString(printed) {
			t.Errorf("%s: no %s in\n%s", command, want, printed)
		}
		says = says[1:]
	}
	for _, s := range says {
		t.Errorf("%s: the pages have no such command there", s[0])
	}
	for _, b := range page(t, "docs/operating.md").Blocks {
		if b.Language != "text" || strings.Contains(b.Text, "connection refused") { // see TestFailures of cmd/ratectl
			continue
		}
		for line := range strings.Lines(unvarying(b.Text)) {
			compared++
			if !strings.Contains(printed, "\n"+line) {
				t.Errorf("docs/operating.md:%d: the commands do not print %q", b.Line, line)
			}
		}
	}
	if compared < 40 || t.Failed() {
		t.Errorf("%d lines are compared with:\n%s", compared, out)
	}
}

// build builds a program of a nested module.
func build(t *testing.T, dir, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, ".")
	cmd.Dir, cmd.Env = filepath.Join(root, dir), append(os.Environ(), "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", dir, err, text)
	}
}

// unvarying returns output without what differs from run to run: times, sizes, and which customer
// of the example has come just now.
func unvarying(text string) string {
	for _, differs := range []struct{ what, as string }{
		{`\d{4}-\d\d-\d\dT[\d:]+Z(/[-\dT:]+Z)?`, "TIME"},
		{`\b(\d+h)?(\d+m)?[\d.]+m?s\b`, "DURATION"},
		{`(?m)( |^)\d+(/\d+)?( |$)`, "${1}N$3"},
		{`(?m)( |^)\d+(/\d+)?( |$)`, "${1}N$3"}, // a match takes the blanks on both of its sides
		{`\b(ok|near|refused) +N +(DURATION|-)`, "STATE N DURATION"},
		{`\b(acme|globex|initech|umbrella)\n`, "CUSTOMER\n"},
		{` +`, " "},
	} {
		text = regexp.MustCompile(differs.what).ReplaceAllString(text, differs.as)
	}
	return text
}
