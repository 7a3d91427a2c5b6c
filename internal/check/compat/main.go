// Compat compiles generated code of one version with the runtime of another, and runs
// the tests of the scenarios that it belongs to.
//
// Usage:
//
//	go run ./internal/check/compat -generated DIRECTORY -runtime DIRECTORY
//
// Both are checkouts of rategen. Each scenario of the first, testdata/*.txtar, has
// source files and what was generated for them. Either all of it compiles with the
// runtime of the second and its tests pass, or the build fails at the line with
// IsAtLeastVersion, which tells users what to do. Anything else is an error: code that
// compiles and limits otherwise, or that fails where nobody sees why. apidiff, which .ci/compat
// runs too, sees the API alone.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	generated := flag.String("generated", ".", "checkout whose generated code is compiled")
	runtime := flag.String("runtime", ".", "checkout whose runtime it is compiled with")
	flag.Parse()
	dir, err := os.MkdirTemp("", "compat")
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
	result, err := try(dir, *generated, *runtime)
	_ = os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
	fmt.Println(result)
}
