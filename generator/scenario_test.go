package generator_test

import (
	"errors"
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/scratch"
	"github.com/rategen/rategen/internal/testkit/typecheck"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

// TestScenarios runs every testdata/*.txtar: the files of the archive are
// generated for, in a package of one scratch module. What comes out is
// compared with the archive. One run is for all scenarios without errors, and one for
// those with some; a full run generates for each alone, too. In the end all of it is
// type-checked at once; in a full run it is vetted, and what has tests is compiled and tested.
func TestScenarios(t *testing.T) {
	archives, err := filepath.Glob("../testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no scenarios in testdata", err)
	}
	module := scratch.Module(t, "..")
	together := map[string][]*scenario{}
	var alone []*scenario
	for _, path := range archives {
		s := unpack(t, path, module)
		if !s.apart {
			together[s.parent] = append(together[s.parent], s)
		}
		if s.apart || effort.Full() {
			alone = append(alone, s)
		}
	}
	for parent, scenarios := range together {
		config := generator.Config{Dir: filepath.Join(module, parent)}
		for _, s := range scenarios {
			config.Patterns = append(config.Patterns, "./"+s.name+"/...")
		}
		found := generate(t, config)
		for _, s := range scenarios {
			own := s.among(found)
			if parent == "bad" && !failed(own) { // it is found only when all else is right
				alone = append(alone, s)
				continue
			}
			t.Run(s.name, func(t *testing.T) { s.compare(t, own) })
		}
		if parent == "good" {
			slices.Reverse(config.Patterns)
			wantUnchanged(t, config)
		}
	}
	t.Run("alone", func(t *testing.T) {
		for _, s := range alone {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.write(t)
				s.compare(t, generate(t, s.config))
				if s.parent == "good" && s.apart {
					wantUnchanged(t, s.config)
				}
			})
		}
	})
	if t.Failed() || testing.Short() {
		return
	}
	if !effort.Full() {
		typecheck.Test(t, module, "./good/...")
		return
	}
	test := []string{"test", "-vet=off"} // nothing is linked but what has tests
	for _, s := range alone {            // that are all in a full run
		if s.parent == "good" {
			test = append(test, s.tested()...)
		}
	}
	for _, args := range [][]string{{"vet", "./good/..."}, test} {
		cmd := exec.Command("go", args...)
		cmd.Dir = module
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", cmd, err, out)
		}
	}
}

// generate returns the errors of a run, or what it warns of.
func generate(t *testing.T, config generator.Config) generator.Diagnostics {
	t.Helper()
	result, err := generator.Run(config)
	var found generator.Diagnostics
	if errors.As(err, &found) {
		return found
	}
	if err != nil {
		t.Fatal(err)
	}
	return result.Warnings
}

// wantUnchanged wants another run, with the generated files there, to change none.
func wantUnchanged(t *testing.T, config generator.Config) {
	t.Helper()
	config.Check = true
	result, err := generator.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Files {
		if f.Status != generator.Unchanged {
			t.Errorf("-check: %s is %s", f.Path, f.Status)
		}
	}
}

func failed(found generator.Diagnostics) bool {
	return slices.ContainsFunc(found, func(d generator.Diagnostic) bool { return d.Severity == generator.Error })
}

// among returns what a run says of a scenario, in the words of one for it alone.
func (s *scenario) among(found generator.Diagnostics) (own generator.Diagnostics) {
	path := regexp.MustCompile(`(^|[^/\w])` + s.name + `/`)
	for _, d := range found {
		if name, ok := strings.CutPrefix(d.Pos.Filename, s.name+"/"); ok {
			d.Pos.Filename, d.Message = name, path.ReplaceAllString(d.Message, "$1")
			own = append(own, d)
		}
	}
	return own
}

// compare compares what is found and generated with what the archive wants.
func (s *scenario) compare(t *testing.T, found generator.Diagnostics) {
	t.Helper()
	after := readTree(t, s.config.Dir)
	var got []txtar.File
	if failed(found) {
		if diff := cmp.Diff(s.before, after); diff != "" {
			t.Errorf("a run with errors changed files (-before +after):\n%s", diff)
		}
		got = []txtar.File{{Name: wantError, Data: []byte(found.Error() + "\n")}}
	} else {
		if len(found) > 0 {
			got = []txtar.File{{Name: wantWarnings, Data: []byte(found.Error() + "\n")}}
		}
		for _, file := range sortedKeys(after) {
			if after[file] != s.before[file] {
				got = append(got, txtar.File{Name: wantPrefix + file, Data: []byte(after[file])})
			}
		}
		for _, file := range sortedKeys(s.before) {
			if _, ok := after[file]; !ok {
				got = append(got, txtar.File{Name: wantPrefix + file, Data: []byte("removed\n")})
			}
		}
	}
	if *update {
		archive, err := txtar.ParseFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		archive.Files = append(s.inputs, got...)
		scratch.Write(t, s.path, string(txtar.Format(archive)))
		return
	}
	if diff := cmp.Diff(texts(s.wants), texts(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
