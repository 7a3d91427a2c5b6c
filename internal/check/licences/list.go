package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A part is some packages that programs import for one purpose.
type part struct {
	name, dir, pattern string
}

// parts returns all parts of rategen, the one that every program has first.
func parts(checkout string) ([]part, error) {
	all := []part{
		{"`runtime`", ".", "./runtime"},
		{"other packages of `runtime`", ".", "./runtime/..."},
		{"commands and `generator`", ".", "./cmd/... ./generator/..."},
	}
	for _, parent := range []string{"runtime", "generator"} {
		nested, err := filepath.Glob(filepath.Join(checkout, parent, "*", "go.mod"))
		if err != nil {
			return nil, err
		}
		for _, path := range nested {
			dir := filepath.Join(parent, filepath.Base(filepath.Dir(path)))
			all = append(all, part{"`" + filepath.ToSlash(dir) + "`", dir, "./..."})
		}
	}
	return all, nil
}

// list returns the table of all modules. A module is named once, for the first part
// that needs it.
func list(checkout string) (string, error) {
	all, err := parts(checkout)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("| linked with | module | licence |\n|---|---|---|\n")
	known := map[string]bool{}
	for _, p := range all {
		modules, err := modulesOf(filepath.Join(checkout, p.dir), strings.Fields(p.pattern))
		if err != nil {
			return "", err
		}
		for _, path := range slices.Sorted(maps.Keys(modules)) {
			if known[path] {
				continue
			}
			known[path] = true
			licence, err := licenceIn(modules[path])
			if err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", p.name, path, licence)
		}
	}
	return out.String(), nil
}

// modulesOf returns the directories of the modules that packages are linked with.
func modulesOf(dir string, patterns []string) (map[string]string, error) {
	modules := map[string]string{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		args := append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}"}, patterns...)
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w\n%s", dir, err, stderr.Bytes())
		}
		for line := range strings.Lines(string(out)) {
			path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !strings.HasPrefix(path, "github.com/rategen/rategen") {
				modules[path] = dir
			}
		}
	}
	return modules, nil
}
