package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/rategen/rategen/internal/testkit/scratch"
)

// good is where scenarios are in their module: they import each other by that.
const good = "good"

// try compiles the scenarios of one checkout with the runtime of another, in a module
// in dir, and says how many there were of each kind.
func try(dir, generated, runtime string) (string, error) {
	runtime, err := filepath.Abs(runtime)
	if err != nil {
		return "", err
	}
	if err := writeModule(dir, runtime); err != nil {
		return "", err
	}
	names, err := extract(dir, filepath.Join(generated, "testdata"))
	if err != nil {
		return "", err
	}
	known, err := constants(filepath.Join(runtime, "runtime"))
	if err != nil {
		return "", err
	}
	var works []string
	refused := 0
	for _, name := range names {
		missing, err := missingConstants(filepath.Join(dir, good, name), known)
		if err != nil {
			return "", err
		}
		if len(missing) == 0 {
			works = append(works, "./"+good+"/"+name+"/...")
			continue
		}
		out, err := command(dir, "go", "build", "-gcflags=-e", "./"+good+"/"+name+"/...")
		if err == nil || !strings.Contains(out, "undefined: runtime."+missing[0]) {
			return "", fmt.Errorf("%s needs %s, which the runtime lacks, and the build does not fail there:\n%s", name, missing[0], out)
		}
		refused++
	}
	if len(works) > 0 {
		if out, err := command(dir, "go", append([]string{"test", "-vet=off"}, works...)...); err != nil {
			return "", fmt.Errorf("generated code that the runtime promises to run does not work with it: %w\n%s", err, out)
		}
	}
	return fmt.Sprintf("%d scenarios: %d work, %d are refused with the line that says why", len(names), len(works), refused), nil
}

func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// writeModule makes a module in dir with the requirements of rategen's, in its
// directory, and of rategen itself.
func writeModule(dir, rategen string) error {
	mod, err := os.ReadFile(filepath.Join(rategen, "go.mod"))
	if err != nil {
		return err
	}
	text := "module example.com/x\n" + scratch.Requirements(string(mod), rategen)
	sum, err := os.ReadFile(filepath.Join(rategen, "go.sum"))
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
}

// extract writes the scenarios that have no errors, each with what was generated for
// it, and returns their names.
func extract(dir, testdata string) ([]string, error) {
	archives, err := filepath.Glob(filepath.Join(testdata, "*.txtar"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		generated, err := write(filepath.Join(dir, good, name), archive.Files)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if generated {
			names = append(names, name)
		} else if err := os.RemoveAll(filepath.Join(dir, good, name)); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no generated code in %s", testdata)
	}
	return names, nil
}

// write writes the files of a scenario, and reports whether some are generated.
func write(dir string, files []txtar.File) (generated bool, err error) {
	for _, f := range files {
		name, want := strings.CutPrefix(f.Name, "want/")
		path := filepath.Join(dir, name)
		if name == "error" || name == "warnings" || name == "flags" {
			continue
		}
		if want && string(f.Data) == "removed\n" {
			err = os.Remove(path)
		} else {
			generated = generated || want
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
				err = os.WriteFile(path, f.Data, 0o644)
			}
		}
		if err != nil {
			return false, err
		}
	}
	return generated, nil
}

var (
	declared = regexp.MustCompile(`(?m)^\s*(?:const )?(IsAtLeastVersion\w+)\s*=`)
	needed   = regexp.MustCompile(`(?m)^const _ = \w+\.(IsAtLeastVersion\w+)`)
)

// constants returns the versions that a runtime says it can replace.
func constants(dir string) (map[string]bool, error) {
	source, err := os.ReadFile(filepath.Join(dir, "version.go"))
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, match := range declared.FindAllSubmatch(source, -1) {
		known[string(match[1])] = true
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s: version.go has no constant IsAtLeastVersion", dir)
	}
	return known, nil
}

// missingConstants returns the versions that generated code below a directory needs
// and that are not known.
func missingConstants(dir string, known map[string]bool) (missing []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range needed.FindAllSubmatch(source, -1) {
			if !known[string(match[1])] {
				missing = append(missing, string(match[1]))
			}
		}
		return err
	})
	return missing, err
}
