package differential

import (
	"bytes"
	"flag"
	"os/exec"
	"regexp"
	"testing"

	"github.com/rategen/rategen/internal/testkit/defect"
)

// defects returns wrong lowerings.
func defects(t *testing.T) []defect.Edit {
	return defect.Read(t, "testdata/control.txt", "../../generator/internal/expr")
}

var control = flag.Bool("control", false, "put wrong lowerings in, and want each to be found")

// TestControl puts wrong lowerings in, one after the other, and wants [TestExpressions]
// to find each.
func TestControl(t *testing.T) {
	if !*control {
		t.Skip("takes minutes: run it with -control")
	}
	difference := regexp.MustCompile(`(?m)^ *(panics: |got  |calls ).*$`)
	for _, d := range defects(t) {
		t.Run(d.Name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), d.Compile(t), "-test.run=^TestExpressions$", "-expressions=3000")
			out, err := cmd.CombinedOutput()
			found := difference.Find(out)
			if err == nil || found == nil {
				t.Fatalf("3,000 expressions do not find it: %v\n%.3000s", err, out)
			}
			t.Logf("%.200s", bytes.TrimSpace(found))
		})
	}
}

// TestDefects wants each defect to be an edit of the generator as it is.
func TestDefects(t *testing.T) {
	for _, d := range defects(t) {
		t.Run(d.Name, func(t *testing.T) { d.Source(t) })
	}
}
