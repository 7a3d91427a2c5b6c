// Apilist lists the exported API of every public package, of the nested modules too,
// in api/, a file for each package and a line for each declaration.
//
// A test compares the lists with the code, so that no change of the API goes unseen: a
// line that is gone, or replaced by another, breaks programs that used it; a new line
// does not. Interfaces are listed with all their methods in one line, since a new
// method breaks other implementations.
//
// Usage, at the root of a checkout:
//
//	go run ./internal/check/api [-write] [-root]
//
// Without -write it prints how the code differs from the lists, and the exit status is
// 1 if it does. With -root it leaves out the nested modules, whose dependencies need
// not be there then.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "write the lists")
	root := flag.Bool("root", false, "leave out nested modules")
	flag.Parse()
	if err := run(".", *root, *write); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// run compares the lists of a checkout with its code, or writes them.
func run(checkout string, onlyRoot, write bool) error {
	all, err := load(checkout, onlyRoot)
	if err != nil {
		return err
	}
	var changed []string
	listed := map[string]bool{}
	for _, p := range all {
		name := filename(p.PkgPath)
		listed[name] = true
		path, lines := filepath.Join(checkout, "api", name), api(p.Types)
		if write {
			err = os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
		} else {
			var difference string
			if difference, err = compare(path, lines); difference != "" {
				changed = append(changed, difference)
			}
		}
		if err != nil {
			return err
		}
	}
	old, err := filepath.Glob(filepath.Join(checkout, "api", "*.txt"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if listed[filepath.Base(path)] || onlyRoot {
			continue
		}
		if write {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		changed = append(changed, "package of "+filepath.Base(path)+" is gone, which is incompatible")
	}
	if len(changed) > 0 {
		return fmt.Errorf("the exported API differs from what api/ lists:\n\n%s\nIf that is meant, run go run ./internal/check/api -write, and say in CHANGELOG.md what changes for users", strings.Join(changed, "\n"))
	}
	return nil
}

// compare returns how the lines of a package differ from a file, "" if they do not.
func compare(path string, lines []string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	before := strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
	had, has := map[string]bool{}, map[string]bool{}
	for _, line := range before {
		had[line] = true
	}
	var out strings.Builder
	for _, line := range lines {
		has[line] = true
		if !had[line] {
			fmt.Fprintln(&out, "  new           ", line)
		}
	}
	for _, line := range before {
		if !has[line] {
			fmt.Fprintln(&out, "  INCOMPATIBLE: ", line, "is gone")
		}
	}
	if out.Len() == 0 {
		return "", nil
	}
	return filepath.Base(path) + ":\n" + out.String(), nil
}
