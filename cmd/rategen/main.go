package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/buildversion"
	"github.com/rategen/rategen/internal/printed"
)

// The options in the manual and in the table of the documentation are made from
// the generator's own.
//
//go:generate go test -run ^TestOptions$ -update

// The exit codes.
const (
	done       = 0
	inputError = 1 // or stale files under -check, or what cannot be printed
	wrongUsage = 2
)

func main() {
	// A command that ends within a second gains more from time than from
	// memory: 200 keeps a hundred interfaces below 60 MB.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, ""))
}

// parse parses a command's flags. If ok is false the command is over, with an
// exit code: it was asked for help, or written wrong.
func parse(flags *flag.FlagSet, args []string, stdout, stderr io.Writer, usage string) (code int, ok bool) {
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		stdout.Write(manual())
		return done, false
	}
	if err != nil {
		fmt.Fprintf(stderr, "usage: %s\nrategen -h prints the manual.\n", usage)
		return wrongUsage, false
	}
	return done, true
}

// run is main with its surroundings as parameters. What cannot be printed is a failure.
func run(args []string, to, stderr io.Writer, dir string) int {
	stdout := &printed.Writer{To: to}
	code := do(args, stdout, stderr, dir)
	if err := stdout.Err(); err != nil {
		fmt.Fprintf(stderr, "rategen: cannot print: %v\n", err)
		code = max(code, inputError)
	}
	return code
}

func do(args []string, stdout, stderr io.Writer, dir string) int {
	if len(args) > 0 {
		switch args[0] {
		case "list":
			return list(args[1:], stdout, stderr, dir)
		case "explain":
			return explain(args[1:], stdout, stderr, dir)
		}
	}
	flags := flag.NewFlagSet("rategen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "write nothing; name the files that are stale or missing and exit with 1 if there are any")
	verbose := flags.Bool("v", false, "name each generated file and what became of it")
	version := flags.Bool("version", false, "print the version and exit")
	asJSON := flags.Bool("json", false, "print errors and warnings to standard output as JSON, one object a line")
	out := flags.String("out", "", "`directory` of another package to write the wrappers to")
	pkg := flags.String("pkg", "", "`name` of the package in -out")
	tags := flags.String("tags", "", "build `tags`, separated by commas")
	if code, ok := parse(flags, args, stdout, stderr, "rategen [-check] [-v] [-json] [-tags list] [-out dir [-pkg name]] [packages]"); !ok {
		return code
	}
	if *pkg != "" && *out == "" {
		fmt.Fprintln(stderr, "rategen: -pkg names the package that -out writes to: add -out")
		return wrongUsage
	}
	if *version {
		fmt.Fprintln(stdout, "rategen", buildversion.Version())
		return done
	}
	result, err := generator.Run(generator.Config{Dir: dir, Patterns: flags.Args(), Tags: *tags, Check: *check, Out: *out, Package: *pkg, CacheDir: cacheDir()})
	p := printer{stdout: stdout, stderr: stderr, json: *asJSON}
	if err != nil {
		p.err(err)
		return inputError
	}
	p.diagnostics(result.Warnings)
	for _, note := range result.Notes {
		p.note(note)
	}
	code := done
	for _, f := range result.Files {
		if *check && (f.Status == generator.Stale || f.Status == generator.Missing) {
			p.stale(f)
			code = inputError
		} else if *verbose && !*asJSON {
			fmt.Fprintf(stdout, "%s: %s\n", f.Path, f.Status)
		}
	}
	return code
}

// cacheDir returns where to remember what is up to date, or "".
func cacheDir() string {
	if dir := os.Getenv("RATEGEN_CACHE"); dir != "" {
		if dir == "off" {
			return ""
		}
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rategen")
}

//go:embed doc.go
var docSource string

// manual returns the package comment as plain text.
func manual() []byte {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", docSource, parser.ParseComments)
	if err != nil {
		return []byte(docSource)
	}
	var p comment.Parser
	printer := comment.Printer{TextWidth: 80}
	return printer.Text(p.Parse(file.Doc.Text()))
}
