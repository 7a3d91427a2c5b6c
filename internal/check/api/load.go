package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/rategen/rategen/internal/check/workspace"
	"github.com/rategen/rategen/internal/testkit/typecheck"
)

// load returns the public packages of a checkout, in order, those of nested modules too
// unless only those of the root are wanted.
func load(checkout string, onlyRoot bool) ([]*packages.Package, error) {
	config := &packages.Config{Dir: checkout, Mode: packages.NeedName, Env: append(os.Environ(), "GOWORK=off")}
	patterns := []string{"./..."}
	if !onlyRoot {
		modules, err := workspace.Modules(checkout)
		if err != nil {
			return nil, err
		}
		scratch, err := os.MkdirTemp("", "api")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(scratch)
		path := filepath.Join(scratch, "go.work")
		if err := workspace.Write(path, checkout, modules); err != nil {
			return nil, err
		}
		config.Env = append(os.Environ(), "GOWORK="+path)
		// Gin needs other packages for msgpack, whose types are in no list.
		config.BuildFlags = []string{"-tags=nomsgpack"}
		patterns = nil
		for _, dir := range modules {
			if isPublic(module + "/" + dir) {
				patterns = append(patterns, "./"+dir+"/...")
			}
		}
	}
	all, err := packages.Load(config, patterns...)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range all {
		if p.Name != "main" && isPublic(p.PkgPath) {
			paths = append(paths, p.PkgPath)
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no public packages", checkout)
	}
	config.Mode = typecheck.Mode
	public, err := packages.Load(config, paths...)
	for _, p := range public {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
	}
	slices.SortFunc(public, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return public, err
}

const module = "github.com/rategen/rategen"

// isPublic reports whether others may import a package and are meant to. The modules that
// export metrics import ratetally, and a program may have them of an older version. What
// rawstore has is for the engine's own tests and benchmarks.
func isPublic(path string) bool {
	switch path {
	case module + "/internal/ratetally":
		return true
	case module + "/runtime/rawstore":
		return false
	}
	elements := strings.Split(within(path), "/")
	return elements[0] != "bench" && elements[0] != "examples" && !slices.Contains(elements, "internal")
}

// within returns a package's path within the module.
func within(path string) string { return strings.TrimPrefix(path, module+"/") }
