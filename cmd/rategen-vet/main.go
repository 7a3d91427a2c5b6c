/*
Rategen-vet checks //ratelimit: directives without generating code.

Usage:

	go tool rategen-vet [-fix] [packages]

It reports the errors and warnings of rategen, and exits with 3 if there are any.
The flag -fix applies mechanical remedies, and writes files with line ends of LF. It is a
-vettool of go vet as well. Linters can run the analyzer in package generator/analyzer.
*/
package main

import (
	"os"
	"strings"

	"github.com/rategen/rategen/generator/analyzer"
	"golang.org/x/tools/go/analysis/singlechecker"
)

func main() {
	last := os.Args[len(os.Args)-1]
	if strings.HasSuffix(last, ".cfg") {
		redirect(last)
	} else if !strings.HasPrefix(last, "-") { // packages, by go/packages
		mustList(os.Args[1:])
		mustRead()
	}
	singlechecker.Main(analyzer.Analyzer)
}
