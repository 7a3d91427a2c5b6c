// Licences lists the modules that a program with rategen may be linked with, each with
// its licence, in bench/results/licences.md between the lines "<!-- listed -->" and
// "<!-- /listed -->". It looks at what the packages of the root module and of those
// below runtime import, on Linux, macOS and Windows, without tests.
//
// Usage, at the root of a checkout:
//
//	go run ./internal/check/licences [-write]
//
// Without -write it compares. The exit status is 1 if the page differs, or if a
// licence is unknown or not permissive.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "write the page")
	flag.Parse()
	if err := run(".", *write); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

const (
	begin = "<!-- listed -->\n"
	end   = "<!-- /listed -->"
)

func run(checkout string, write bool) error {
	table, err := list(checkout)
	if err != nil {
		return err
	}
	path := filepath.Join(checkout, "bench", "results", "licences.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no lines %q and %q", path, strings.TrimSpace(begin), end)
	}
	switch text := before + begin + table + end + after; {
	case text == string(page):
		return nil
	case !write:
		return fmt.Errorf("%s differs from what is linked: run go run ./internal/check/licences -write", path)
	default:
		return os.WriteFile(path, []byte(text), 0o644)
	}
}
