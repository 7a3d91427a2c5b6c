// Api lists the exported API of every public package, of the nested modules too, in
// api.txt, a line for each declaration, as Go's own api files do.
//
// A test compares the list with the code, so that no change of the API goes unseen: its
// review shows the lines that are gone, which break programs that used them, and the new
// ones. What breaks programs since the last release, .ci/compat finds by apidiff.
//
// Usage, at the root of a checkout:
//
//	go run ./internal/check/api [-write] [-root]
//
// Without -write it prints how the code differs from the list, and the exit status is
// 1 if it does. With -root it leaves out the nested modules, whose dependencies need
// not be there then.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "write the list")
	root := flag.Bool("root", false, "leave out nested modules")
	flag.Parse()
	if err := run(".", *root, *write); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// run compares the list of a checkout with its code, or writes it.
func run(checkout string, onlyRoot, write bool) error {
	all, err := load(checkout, onlyRoot)
	if err != nil {
		return err
	}
	var lines []string
	loaded := map[string]bool{}
	for _, p := range all {
		lines = append(lines, api(p.Types)...)
		loaded[within(p.PkgPath)] = true
	}
	path := filepath.Join(checkout, "api.txt")
	if write && !onlyRoot {
		return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	listed := strings.Split(strings.TrimSpace(string(text)), "\n")
	if onlyRoot {
		listed = slices.DeleteFunc(listed, func(line string) bool {
			of, _, _ := strings.Cut(line, ",")
			return !loaded[of]
		})
	}
	if changes := compare(listed, lines); changes != "" {
		return fmt.Errorf("the exported API differs from what api.txt lists:\n\n%s\nIf that is meant, run go run ./internal/check/api -write, and say in CHANGELOG.md what changes for users", changes)
	}
	return nil
}

// compare returns how two lists differ, "" if they do not.
func compare(before, after []string) string {
	return missing(before, after, "-") + missing(after, before, "+")
}

// missing returns those of some lines that others lack, after a sign.
func missing(lines, others []string, sign string) (text string) {
	in := map[string]bool{}
	for _, line := range others {
		in[line] = true
	}
	for _, line := range lines {
		if !in[line] {
			text += sign + " " + line + "\n"
		}
	}
	return text
}
