package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// load returns the public packages of the module in a directory, in order.
func load(dir string) ([]*packages.Package, error) {
	all, err := packages.Load(&packages.Config{
		Dir:  dir,
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports,
		Env:  append(os.Environ(), "GOWORK=off"),
	}, "./...")
	if err != nil {
		return nil, err
	}
	var public []*packages.Package
	for _, p := range all {
		if p.Name == "main" || !isPublic(p.PkgPath) {
			continue
		}
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
		public = append(public, p)
	}
	if err == nil && len(public) == 0 {
		err = fmt.Errorf("%s has no public packages", dir)
	}
	slices.SortFunc(public, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return public, err
}

const module = "github.com/rategen/rategen"

// isPublic reports whether others may import a package and are meant to.
func isPublic(path string) bool {
	elements := strings.Split(strings.TrimPrefix(path, module+"/"), "/")
	return elements[0] != "examples" && !slices.Contains(elements, "internal")
}

// filename returns the name of a package's list.
func filename(path string) string {
	return strings.ReplaceAll(strings.TrimPrefix(path, module+"/"), "/", "_") + ".txt"
}
