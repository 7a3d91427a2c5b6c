package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/doccheck"
)

const module = "github.com/rategen/rategen/"

// A pkg is a package of the module.
type pkg struct {
	path    string   // within the module
	imports []*pkg   // that are not imported by way of another of them
	steps   []string // the numbers of its files on a way
}

// generates reports whether the package is part of a directive's way.
func (p *pkg) generates() bool {
	first, _, _ := strings.Cut(p.path, "/")
	return first == "generator" || p.path == "cmd/rategen" || p.path == "cmd/rategen-vet"
}

// name returns the path as the picture shows it.
func (p *pkg) name() string {
	if _, name, ok := strings.Cut(p.path, "/internal/"); ok {
		return "internal/" + name
	}
	return p.path
}

// list returns the packages that users of the module build, sorted by path.
func list(root string) ([]*pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./cmd/...", "./generator/...", "./lua/...", "./runtime/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("go list: %s", exit.Stderr)
		}
		return nil, err
	}
	byPath, imports := map[string]*pkg{}, map[string][]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&listed); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		p := &pkg{path: strings.TrimPrefix(listed.ImportPath, module)}
		byPath[listed.ImportPath], imports[listed.ImportPath] = p, listed.Imports
	}
	for name, p := range byPath {
		for _, direct := range imports[name] {
			q := byPath[direct]
			if q != nil && !slices.ContainsFunc(imports[name], func(other string) bool { return other != direct && reaches(other, direct, imports) }) {
				p.imports = append(p.imports, q)
			}
		}
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b *pkg) int { return strings.Compare(a.path, b.path) }), nil
}

// reaches reports whether a package imports another one, in however many steps.
func reaches(from, to string, imports map[string][]string) bool {
	for _, direct := range imports[from] {
		if direct == to || reaches(direct, to, imports) {
			return true
		}
	}
	return false
}

// number gives the packages the numbers of their files in the ways that
// ARCHITECTURE.md lists.
func number(packages []*pkg, root string) error {
	page, err := doccheck.Read(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		return err
	}
	n, section := 0, ""
	for _, item := range page.Items {
		if item.Section != section {
			n, section = 0, item.Section
		}
		n++
		for _, l := range item.Links {
			i := slices.IndexFunc(packages, func(p *pkg) bool { return p.path == path.Dir(l.Target) })
			if i < 0 {
				continue
			}
			p, step := packages[i], fmt.Sprint(n)
			if p.generates() == (section == "A directive's way") && !slices.Contains(p.steps, step) {
				p.steps = append(p.steps, step)
			}
		}
	}
	return nil
}
