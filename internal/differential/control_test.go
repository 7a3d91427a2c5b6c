package differential

import (
	"bytes"
	"flag"
	"os/exec"
	"regexp"
	"testing"

	"github.com/rategen/rategen/internal/testkit/defect"
)

// defects are wrong lowerings.
var defects = map[string]defect.Edit{
	"a call on the right of && is made whatever is on its left": {File: "../../generator/internal/expr/lower.go",
		Old: "if !OnlyTests(right) {", New: "if !OnlyTests(right) { return append(steps, right...)\n}\nif false {"},
	"an operand is not nil where another one is": {File: "../../generator/internal/expr/facts.go",
		Old: "case token.LOR:\n\t\t\tif !is {", New: "case token.LOR:\n\t\t\tif is {"},
	"an operand is called after the one behind it": {File: "../../generator/internal/expr/lower.go",
		Old: "if calls {", New: "if calls && false {"},
	"an embedded pointer on the way is not tested": {File: "../../generator/internal/expr/lower_guard.go",
		Old: "if t = field.Type(); isNilable(t) {", New: "if t = field.Type(); isNilable(t) && false {"},
	"what a constraint with comparable allows is not nil": {File: "../../generator/internal/expr/nilable.go",
		Old: "return ok && !allTermsOf(iface, func(types.Type) bool { return true })", New: "return ok && iface.IsMethodSet()"},
}

var control = flag.Bool("control", false, "put wrong lowerings in, and want each to be found")

// TestControl puts wrong lowerings in, one after the other, and wants [TestExpressions]
// to find each.
func TestControl(t *testing.T) {
	if !*control {
		t.Skip("takes minutes: run it with -control")
	}
	difference := regexp.MustCompile(`(?m)^ *(panics: |got  |calls ).*$`)
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
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
	for name, d := range defects {
		t.Run(name, func(t *testing.T) { d.Source(t) })
	}
}
