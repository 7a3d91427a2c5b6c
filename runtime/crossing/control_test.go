package crossing

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/defect"
	"github.com/rategen/rategen/internal/testkit/effort"
)

var control = flag.Bool("control", false, "put defects back, and want each to be found")

// TestControl puts defects back, one after the other, and wants the random test to find
// each. It logs how many programs that took.
func TestControl(t *testing.T) {
	if !*control {
		t.Skip("takes half an hour: run it with -control")
	}
	failed := regexp.MustCompile(`(?s)(?:failed after \d+ tests: |Original traceback \()([^\n]*).*?program (\d+):`)
	for _, d := range defect.Read(t, "testdata/control.txt", "..") {
		t.Run(d.Name, func(t *testing.T) {
			test, checks, _ := strings.Cut(d.Finds[0], " ")
			binary := d.Compile(t)
			begin := time.Now()
			cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+test+"$", "-test.parallel=12", "-rapid.nofailfile", "-rapid.shrinktime=1ms", "-rapid.checks="+checks, "-promise="+d.Finds[1])
			cmd.Env = append(os.Environ(), effort.Variable+"=1")
			out, err := cmd.CombinedOutput()
			found := failed.FindStringSubmatch(string(out))
			if err == nil || found == nil {
				t.Fatalf("%s passes %s programs: %v\n%.3000s", test, checks, err, out)
			}
			t.Logf("found after %s programs and %.1f s: %.300s", found[2], time.Since(begin).Seconds(), found[1])
		})
	}
}

// TestDefects wants each defect to be an edit of the engine as it is.
func TestDefects(t *testing.T) {
	for _, d := range defect.Read(t, "testdata/control.txt", "..") {
		t.Run(d.Name, func(t *testing.T) { d.Source(t) })
	}
}
