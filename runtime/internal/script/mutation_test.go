package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/defect"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/lua"
)

// A scriptMutation is a fault put into the scripts, and the test that finds it.
type scriptMutation struct {
	name     string
	in       string // the algorithm whose script it is in; empty: all
	old, new string
	test     string // as for -run
	timed    bool   // it is none where time stands still while a script runs
}

// mutations reads the faults from their document.
func mutations(t *testing.T) (all []scriptMutation) {
	t.Helper()
	for _, e := range defect.Read(t, "testdata/mutations.txt", "") {
		m := scriptMutation{name: e.Name, in: strings.TrimPrefix(e.File, "all"), old: e.Old, new: e.New}
		m.test, m.timed = strings.CutSuffix(e.Finds[0], " where time goes on")
		m.test = strings.NewReplacer("model/", "TestModel$/^", "documents/", "TestRedisStoreWithInjectedClock$/^", "redis/", "TestKeeping$/^", "/", "$/^").Replace(m.test)
		m.test = "^" + m.test + "$"
		all = append(all, m)
	}
	return all
}

// sample is how many mutations a run tries that is not full.
var sample = effort.ChooseMore(2, 6)

// TestMutations runs this test binary once for every mutation, with the scripts changed by it,
// and wants the named test to fail; or to pass, if the mutation is no fault on this server. A run
// that is not full tries a sample, and holds the others against the scripts.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a test binary for each mutation")
	}
	if mutation()[0] != "" {
		t.Skip("the scripts are mutated already")
	}
	frozen := redistest.Start(t).FrozenTime()
	t.Parallel()
	mutations := mutations(t)
	texts := map[string]string{} // by algorithm
	for i, m := range mutations {
		harmless := frozen && m.timed
		if texts[m.in] == "" {
			texts[m.in] = scriptsOf(m.in)
		}
		text := texts[m.in]
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(text, m.old) {
				t.Fatalf("the script of %q does not hold %q", m.in, m.old)
			}
			if every := len(mutations) / effort.Few(sample); !effort.Full() && i%every != 1 {
				return
			}
			out, err := runMutated(t, m)
			var exit *exec.ExitError
			if harmless {
				if err != nil {
					t.Errorf("%s fails with %q in place of %q, which should be no fault on this server: %v\n%s", m.test, m.new, m.old, err, out)
				}
			} else if err == nil {
				t.Errorf("%s passes with %q in place of %q", m.test, m.new, m.old)
			} else if !errors.As(err, &exit) || !strings.Contains(out, "--- FAIL: ") {
				t.Errorf("%s did not run: %v\n%s", m.test, err, out)
			}
			if strings.Contains(out, "Error compiling script") {
				t.Errorf("%q makes no script:\n%s", m.new, out)
			}
			if _, found, ok := strings.Cut(out, ".go:"); ok {
				t.Logf("%s: %.200s", m.test, found)
			}
		})
	}
}

// scriptsOf returns the scripts of an algorithm, or those that have all.
func scriptsOf(algorithm string) (text string) {
	algorithms := uint(lua.Several - 1)
	if algorithm != "" {
		algorithms = 1 << slices.Index(lua.Algorithms[:], algorithm)
	}
	for _, set := range []uint{lua.Several, lua.Settle, lua.Renew, lua.Several | lua.Block, lua.Settle | lua.Block, lua.Hold | lua.Block} {
		text += lua.Take(set|algorithms) + lua.Take(set|algorithms|lua.Past)
	}
	return text
}

// runMutated runs the mutation's test and returns its output.
func runMutated(t *testing.T, m scriptMutation) (string, error) {
	t.Helper()
	text, err := json.Marshal([2]string{m.old, m.new})
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run="+m.test, "-test.timeout=50s", "-test.failfast",
		"-rapid.nofailfile", "-rapid.shrinktime=1ms", "-rapid.seed=1", "-rapid.checks=1500")
	// The test is the one of a full run, which finds them all.
	cmd.Env = append(os.Environ(), mutationVariable+"="+string(text), effort.Variable+"=1")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "no tests to run") {
		t.Fatalf("%s is no test", m.test)
	}
	return string(out), err
}
