package docs_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/check/docs"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/ports"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

// varying is what differs from run to run in what the tutorial shows.
var varying = regexp.MustCompile(`(?m)^(Date: ).*|(;t=)\d+|^(Retry-After: )\d+|(\t)[\d.]+s$`)

// patient are what stands in the commands of the tutorial, and what waits on a busy machine for as long as
// it takes.
var patient = [][2]string{
	{"./hello &\nsleep 1\n", "./hello 2>log &\nfor _ in {1..600}; do curl -s -o /dev/null localhost:8080/metrics && break || sleep 0.1; done\n"},
	{"limits.yaml\nsleep 2\n", "limits.yaml\nfor _ in {1..600}; do grep -q 'in force.*overridden=1' log && break || sleep 0.1; done\n"},
}

// TestTutorial follows the tutorial in an empty directory: it writes the files, runs the
// commands in one shell, and compares what they print. The checkout is this one.
func TestTutorial(t *testing.T) {
	if !effort.Full() {
		t.Skip("builds a module with its dependencies: in a full run only")
	}
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	checkout, err := filepath.Abs(root)
	limittest.OK(t, err)
	dir := t.TempDir()
	port := freePort(t) // of the tutorial's server
	blocks := page(t, "docs/tutorial.md").Blocks
	waits := 0
	for i := range blocks {
		for _, p := range patient {
			waits += strings.Count(blocks[i].Text, p[0])
			blocks[i].Text = strings.ReplaceAll(blocks[i].Text, p[0], p[1])
		}
		blocks[i].Text = strings.ReplaceAll(blocks[i].Text, ":8080", ":"+port)
	}
	script := "set -e -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
	var want []docs.Block
	for i, b := range blocks {
		if b.Name != "" {
			script += "cat >" + b.Name + " <<'END OF FILE'\n" + b.Text + "END OF FILE\n"
		} else if b.Language == "sh" && !strings.HasPrefix(b.Text, "git clone ") { // of this checkout
			out := "/dev/null"
			if i+1 < len(blocks) && blocks[i+1].Language == "text" {
				out = filepath.Join(dir, "out"+strconv.Itoa(len(want)))
				want = append(want, blocks[i+1])
			}
			script += "{ " + strings.ReplaceAll(b.Text, "../rategen", checkout) + "} >" + out + "\n"
		}
	}
	if len(want) < 5 || waits != len(patient) {
		t.Fatalf("the tutorial shows what %d commands print, and waits %d times", len(want), waits)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	// TestGoCode vets the code: go test would look at the standard library with its own checks.
	cmd.Env = append(os.Environ(), "GOFLAGS="+scratch.Flags("-mod=mod", "-vet=off"), "GOWORK=off", "REDIS_ADDR=")
	log, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for i, b := range want {
		out, err := os.ReadFile(filepath.Join(dir, "out"+strconv.Itoa(i)))
		limittest.OK(t, err)
		got := strings.ReplaceAll(string(out), "\r\n", "\n")
		if diff := cmp.Diff(varying.ReplaceAllString(b.Text, "$1$2$3$4"), varying.ReplaceAllString(got, "$1$2$3$4")); diff != "" {
			t.Errorf("docs/tutorial.md:%d: the command before prints (-page +output):\n%s", b.Line, diff)
		}
	}
}

// freePort returns a port of this machine on which nobody listens, and none that an outgoing
// connection may have in a moment.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(1000)
		if claim, ok := ports.Claim(port); ok {
			t.Cleanup(func() { _ = claim.Close() })
			return strconv.Itoa(port)
		}
	}
	t.Fatal("no port is free")
	return ""
}
