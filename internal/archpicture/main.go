// Archpicture draws the packages of this module and their imports, in two
// columns: the way of a directive and the way of a call. It asks go list for the
// packages, and ARCHITECTURE.md for the files that lie on the ways.
//
// Usage, in the root of a checkout:
//
//	go run ./internal/archpicture [-write docs/architecture.svg]
//
// A test fails if the picture is not up to date.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	write := flag.String("write", "", "write the picture to this `file` instead of standard output")
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, "archpicture:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	picture, err := draw(".")
	if err != nil {
		return err
	}
	if file == "" {
		_, err = os.Stdout.Write(picture)
		return err
	}
	return os.WriteFile(file, picture, 0o644)
}

// draw returns the picture of the checkout in a directory.
func draw(root string) ([]byte, error) {
	packages, err := list(root)
	if err != nil {
		return nil, err
	}
	if err := number(packages, root); err != nil {
		return nil, err
	}
	var generating, deciding []*pkg
	for _, p := range packages {
		if p.generates() {
			generating = append(generating, p)
		} else {
			deciding = append(deciding, p)
		}
	}
	columns := []*column{
		newColumn("A directive's way", generating, "x.go with //ratelimit: lines", "cmd/rategen", "", ""),
		newColumn("A call's way", deciding, "x_ratelimit.go, generated", "runtime", "Redis", "lua"),
	}
	var b bytes.Buffer
	writeSVG(&b, columns)
	return b.Bytes(), nil
}
