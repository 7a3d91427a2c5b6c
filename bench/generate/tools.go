package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/tools/go/packages"
)

// A tool is a command to measure. Those that do one package at a time are
// several invocations for the whole corpus.
type tool struct {
	name   string
	env    string                               // one more variable
	config string                               // .mockery.yml, if any
	calls  func(packages []string) []([]string) // the command lines for some packages
}

// ownTools returns rategen, and below it the least: reading the packages with types, and
// naming them.
func ownTools(bin string) ([]tool, error) {
	rategen := filepath.Join(bin, "rategen")
	build := exec.Command("go", "build", "-o", rategen, "github.com/rategen/rategen/cmd/rategen")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	calls := func(pkgs []string) [][]string { return [][]string{{rategen, pattern(pkgs)}} }
	return []tool{
		{name: "rategen", env: "RATEGEN_CACHE=" + filepath.Join(bin, "records"), calls: calls},
		{name: "rategen, no record", env: "RATEGEN_CACHE=off", calls: calls},
		{name: "packages.Load", calls: func(pkgs []string) [][]string { return [][]string{{self, "-floor", pattern(pkgs)}} }},
		{name: "go list", calls: func(pkgs []string) [][]string {
			return [][]string{{"go", "list", "-deps", "-export", "-n", "-json=ImportPath,Export,GoFiles", pattern(pkgs)}}
		}},
	}, nil
}

// pattern names one package, or all.
func pattern(pkgs []string) string {
	if len(pkgs) == 1 {
		return "./" + pkgs[0]
	}
	return "./..."
}

// load is the floor: types and syntax of the packages themselves, export data
// of what they import.
func load(pattern string) error {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
	}, pattern)
	if err == nil && packages.PrintErrors(pkgs) > 0 {
		err = errors.New("packages have errors")
	}
	return err
}

// otherTools installs the other generators, as they are at the time of
// writing. One that cannot be installed is left out.
func otherTools(bin string) []tool {
	at := func(name string) string { return filepath.Join(bin, name) }
	all := []struct {
		module string
		tool
	}{
		{"github.com/vektra/mockery/v3@latest", tool{
			name: "mockery", config: ".mockery.yml",
			calls: func([]string) [][]string { return [][]string{{at("mockery"), "--log-level=error"}} },
		}},
		{"github.com/matryer/moq@latest", tool{
			name: "moq",
			calls: func(pkgs []string) (calls [][]string) {
				for _, pkg := range pkgs {
					call := []string{at("moq"), "-rm", "-out", pkg + "/moq.go", "./" + pkg}
					for i := range interfacesEach {
						call = append(call, fmt.Sprint("Service", i))
					}
					calls = append(calls, call)
				}
				return calls
			},
		}},
	}
	var tools []tool
	for _, t := range all {
		install := exec.Command("go", "install", t.module)
		install.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=-mod=mod")
		install.Dir = bin
		if out, err := install.CombinedOutput(); err != nil {
			log.Printf("%s is left out: %v\n%s", t.name, err, out)
			continue
		}
		tools = append(tools, t.tool)
	}
	return tools
}

// writeConfig writes the configuration file of a tool that wants one.
func (t tool) writeConfig(dir string, pkgs []string) error {
	if t.config == "" {
		return nil
	}
	text := "all: true\nlog-level: error\npackages:\n"
	for _, pkg := range pkgs {
		text += "  example.com/corpus/" + pkg + ":\n"
	}
	return os.WriteFile(filepath.Join(dir, t.config), []byte(text), 0o644)
}
