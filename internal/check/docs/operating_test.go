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
	says := regexp.MustCompile(`(?m)^(ratectl .*)\n\t(.*)$`).FindAllStringSubmatch(content(t, "internal/check/docs/testdata/operating.txt"), -1)
	compared := len(says)
	_, rest, _ := strings.Cut(string(out), "\n$ ratectl ")
	for part := range strings.SplitSeq("ratectl "+rest, "\n$ ") {
		command, printed, _ := strings.Cut(part, "\n")
		if command = strings.Trim(command, "`"); !strings.HasPrefix(command, "ratectl ") {
			continue
		}
		if len(says) == 0 || says[0][1] != command {
			t.Fatalf("%s: nobody says what it prints here: %s", command, printed)
		}
		if want := says[0][2]; !regexp.MustCompile(want).MatchString(printed) {
			t.Errorf("%s: no %s in\n%s", command, want, printed)
		}
		says = says[1:]
	}
	for _, s := range says {
		t.Errorf("%s: the pages have no such command there", s[1])
	}
	for _, b := range page(t, "docs/operating.md").Blocks {
		if b.Language != "text" || strings.Contains(b.Text, "connection refused") { // see cmd/ratectl/testdata/failures.txt
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
