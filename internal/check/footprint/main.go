// Footprint measures what importing package runtime adds to a program that has go-redis
// and net/http already: to its go.mod, its go.sum and its binary. And it measures what
// go get of each package changes in a go.mod. It writes the results into
// bench/results/footprint.md, between the lines "<!-- measured -->" and "<!-- /measured -->",
// and "<!-- got -->" and "<!-- /got -->".
//
// Usage, at the root of a checkout:
//
//	go run ./internal/check/footprint [-write]
//
// Without -write it prints the results. It needs what go mod tidy of this checkout and its
// nested modules have brought into the module cache, or the network.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "write the result into the page")
	flag.Parse()
	if err := run(".", *write); err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		os.Exit(1)
	}
}

func run(checkout string, write bool) error {
	checkout, err := filepath.Abs(checkout)
	if err != nil {
		return err
	}
	text, err := describe(checkout)
	if err != nil {
		return err
	}
	table, err := got(checkout)
	if err != nil || !write {
		fmt.Print(text, "\n", table)
		return err
	}
	path := filepath.Join(checkout, "bench", "results", "footprint.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for mark, part := range map[string]string{"measured": text, "got": table} {
		_, before, after := section(string(page), mark)
		if after == "" {
			return errors.New(path + " has no lines <!-- " + mark + " --> and <!-- /" + mark + " -->")
		}
		page = []byte(before + part + after)
	}
	return os.WriteFile(path, page, 0o644)
}

// section returns what stands between the marks of a page, and what is before and after,
// with the marks.
func section(page, mark string) (text, before, after string) {
	begin, end := "<!-- "+mark+" -->\n", "<!-- /"+mark+" -->"
	i, j := strings.Index(page, begin), strings.Index(page, end)
	if i < 0 || j < i {
		return "", "", ""
	}
	i += len(begin)
	return page[i:j], page[:i], page[j:]
}

// describe returns what is added, as a table in Markdown.
func describe(checkout string) (string, error) {
	without, err := measure(checkout, false)
	if err != nil {
		return "", err
	}
	with, err := measure(checkout, true)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "| | without | with `runtime` | added |\n|---|---:|---:|---|\n")
	for _, row := range []struct {
		name          string
		without, with []string
	}{
		{"modules in `go.mod`", without.required, with.required},
		{"modules in `go.sum`", without.summed, with.summed},
		{"modules linked", without.linked, with.linked},
	} {
		fmt.Fprintf(&out, "| %s | %d | %d | %s |\n", row.name, len(row.without), len(row.with), strings.Join(added(row.without, row.with), ", "))
	}
	fmt.Fprintf(&out, "| binary, `go build`, MB | %.2f | %.2f | %.2f |\n", mega(without.binary), mega(with.binary), mega(with.binary-without.binary))
	fmt.Fprintf(&out, "| binary, `-ldflags='-s -w'`, MB | %.2f | %.2f | %.2f |\n", mega(without.stripped), mega(with.stripped), mega(with.stripped-without.stripped))
	return out.String(), nil
}

func mega(bytes int64) float64 { return float64(bytes) / 1e6 }
