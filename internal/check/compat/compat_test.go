// Package compat compiles generated code of one version with the runtime of another, and runs
// the tests of the scenarios that it belongs to.
//
//	go test ./internal/check/compat -run TestVersions -v -generated DIRECTORY -runtime DIRECTORY
//
// Both are checkouts of rategen. Each scenario of the first, testdata/*.txtar, has
// source files and what was generated for them. Either all of it compiles with the
// runtime of the second and its tests pass, or the build fails at the line with
// IsAtLeastVersion, which tells users what to do. Anything else is an error: code that
// compiles and limits otherwise, or that fails where nobody sees why. apidiff, which .ci/compat
// runs too, sees the API alone.
package compat

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/scratch"
)

var (
	generatedBy = flag.String("generated", "", "checkout whose generated code is compiled")
	runtimeOf   = flag.String("runtime", "", "checkout whose runtime it is compiled with")
)

// TestVersions has the code of one checkout run with the runtime of another.
func TestVersions(t *testing.T) {
	if *generatedBy == "" || *runtimeOf == "" {
		t.Skip("no checkouts are named")
	}
	result, err := try(t, *generatedBy, *runtimeOf)
	limittest.OK(t, err)
	t.Log(result)
}

var (
	declared = regexp.MustCompile(`(?m)^\s*(?:const )?(IsAtLeastVersion\w+)\s*=`)
	needed   = regexp.MustCompile(`(?m)^const _ = \w+\.(IsAtLeastVersion\w+)`)
)

// try compiles the scenarios of one checkout with the runtime of another, and says how many
// there were of each kind, or what is wrong with one.
func try(t *testing.T, generated, runtime string) (string, error) {
	module := scratch.Module(t, runtime)
	version, err := os.ReadFile(filepath.Join(runtime, "runtime/version.go"))
	limittest.OK(t, err)
	known := map[string]bool{} // the versions that the runtime says it can replace
	for _, match := range declared.FindAllSubmatch(version, -1) {
		known[string(match[1])] = true
	}
	archives, err := filepath.Glob(filepath.Join(generated, "testdata/*.txtar"))
	limittest.OK(t, err)
	works, refused := []string{"test", "-vet=off"}, 0
	for _, path := range archives {
		files, missing := scenario(t, path, known)
		if files == nil {
			continue
		}
		dir := "good/" + strings.TrimSuffix(filepath.Base(path), ".txtar") // they import each other by that
		for name, text := range files {
			scratch.Write(t, filepath.Join(module, dir, name), text)
		}
		if missing == "" {
			works = append(works, "./"+dir+"/...")
			continue
		}
		out, err := command(module, "build", "-gcflags=-e", "./"+dir+"/...")
		if err == nil || !regexp.MustCompile(`undefined: \w+\.`+missing+`\b`).MatchString(out) {
			return "", fmt.Errorf("%s needs %s, which the runtime lacks, and the build does not fail there:\n%s", path, missing, out)
		}
		refused++
	}
	if len(works) == 2 && refused == 0 {
		return "", fmt.Errorf("no generated code in %s", generated)
	}
	if out, err := command(module, works...); len(works) > 2 && err != nil {
		return "", fmt.Errorf("generated code that the runtime promises to run does not work with it: %w\n%s", err, out)
	}
	return fmt.Sprintf("%d work, %d are refused with the line that says why", len(works)-2, refused), nil
}

func command(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// scenario returns the files of a scenario with what was generated for it, nil if that is nothing, and
// a version that the code needs and that is not known.
func scenario(t *testing.T, path string, known map[string]bool) (files map[string]string, missing string) {
	archive, err := txtar.ParseFile(path)
	limittest.OK(t, err)
	files = map[string]string{}
	generated := false
	for _, f := range archive.Files {
		name, want := strings.CutPrefix(f.Name, "want/")
		switch {
		case name == "error", name == "warnings", name == "flags":
		case want && string(f.Data) == "removed\n":
			delete(files, name)
		default:
			generated = generated || want
			files[name] = string(f.Data)
		}
	}
	if !generated {
		return nil, ""
	}
	for _, text := range files {
		for _, match := range needed.FindAllStringSubmatch(text, -1) {
			if !known[match[1]] {
				missing = match[1]
			}
		}
	}
	return files, missing
}

// checkout copies parts of this checkout, with a text replaced by another wherever it is.
func checkout(t *testing.T, before, after string, paths ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range paths {
		err := filepath.WalkDir(filepath.Join("../../..", path), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			name := strings.TrimPrefix(filepath.ToSlash(path), "../../../")
			scratch.Write(t, filepath.Join(dir, name), strings.ReplaceAll(string(text), before, after))
			return err
		})
		limittest.OK(t, err)
	}
	return dir
}

// TestTry compiles code for runtimes that are older or newer in several ways. The scenarios have no tests
// of their own, which would have to be linked.
func TestTry(t *testing.T) {
	if !effort.Full() {
		t.Skip("compiles a runtime: in a full run only")
	}
	const constant, here = "IsAtLeastVersion0_1_0", "../../.."
	scenarios := []string{"testdata/algorithms.txtar", "testdata/elsewhere.txtar", "testdata/err_options.txtar"}
	older := checkout(t, ") AddString(", ") AddText(", "go.mod", "go.sum", "runtime", "lua", "internal")
	for name, c := range map[string]struct{ before, after, runtime, want string }{
		"same":                                 {"", "", here, "2 work, 0 are refused"},
		"older runtime":                        {constant, "IsAtLeastVersion0_9_0", here, "0 work, 2 are refused"},
		"a promise not kept":                   {"", "", older, "AddString undefined"},
		"code that does not say what it needs": {"const _ = runtime." + constant, "var _ = runtime.Newer", here, "undefined: runtime.Newer"},
		"no generated code":                    {"-- want/", "-- ", here, "no generated code"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := try(t, checkout(t, c.before, c.after, scenarios...), c.runtime)
			if said := fmt.Sprint(got, err); !strings.Contains(said, c.want) {
				t.Errorf("%s, want %q", said, c.want)
			}
		})
	}
}
