// Print prints the script of an algorithm as Redis runs it, of which the files in lua are the
// pieces.
//
// Usage:
//
//	go run ./lua/print [-batch] [-block] [-past] algorithm
//
// It is the script that decides one call with one limit. With -batch it is the one that decides
// any number of them; -block and -past have it know limits with a block, and those that keep
// counts of former periods or tell shares.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rategen/rategen/lua"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "print:", err)
		os.Exit(2)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("print", flag.ContinueOnError)
	batch := flags.Bool("batch", false, "decide any number of calls")
	block := flags.Bool("block", false, "know limits with a block")
	past := flags.Bool("past", false, "know limits that keep former counts, or tell shares")
	if err := flags.Parse(args); err != nil {
		return err
	}
	i := slices.Index(lua.Algorithms[:], flags.Arg(0))
	if i < 0 || flags.NArg() != 1 {
		return fmt.Errorf("%q is no algorithm: write one of %s", strings.Join(flags.Args(), " "), strings.Join(lua.Algorithms[:], ", "))
	}
	set := uint(1) << i
	if !*batch {
		set |= lua.One
	}
	if *block {
		set |= lua.Block
	}
	if *past {
		set |= lua.Past
	}
	_, err := io.WriteString(out, lua.Take(set))
	return err
}
