package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rategen/rategen/generator"
	"github.com/rategen/rategen/internal/printed"
)

// explain is rategen explain: it says in words what a directive means.
func explain(args []string, stdout, stderr io.Writer, dir string) int {
	const usage = "rategen explain [-json] [-tags list] file.go:line"
	flags := flag.NewFlagSet("rategen explain", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print a JSON object for each directive, one a line")
	tags := flags.String("tags", "", "build `tags`, separated by commas")
	if code, ok := parse(flags, args, stdout, stderr, usage); !ok {
		return code
	}
	file, line, ok := fileLine(flags.Args())
	if !ok {
		fmt.Fprintf(stderr, "rategen explain: name one line of a file, as in employee.go:13\nusage: %s\n", usage)
		return wrongUsage
	}
	explanations, err := generator.Explain(generator.Config{Dir: dir, Tags: *tags}, file, line)
	if err != nil {
		out := printer{stdout: stdout, stderr: stderr, json: *asJSON}
		out.err(err)
		return inputError
	}
	for i, e := range explanations {
		if *asJSON {
			members := ruleMembers(e.Rule)
			var topics []member
			for _, t := range e.Topics {
				topics = append(topics, member{t.Name, t.Text})
			}
			fmt.Fprintf(stdout, "%s\n", object(append(members, member{"explanation", json.RawMessage(object(topics))})))
			continue
		}
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		fmt.Fprintf(stdout, "%s:%d: %s\n", e.Pos.Filename, e.Pos.Line, e.Name)
		if e.Policy {
			printTopic(stdout, "policy", "used by "+cmp.Or(strings.Join(e.UsedBy, ", "), "nothing in this package"))
		} else {
			printTopic(stdout, "limits", e.Interface+"."+strings.Join(e.Methods, ", "))
		}
		for _, t := range e.Topics {
			printTopic(stdout, t.Name, t.Text)
		}
	}
	return done
}

// fileLine reads what an editor or the go command prints: a file, a line and perhaps a
// column, separated by colons.
func fileLine(args []string) (file string, line int, ok bool) {
	if len(args) != 1 {
		return "", 0, false
	}
	var numbers []int
	for file = args[0]; len(numbers) < 2; {
		i := strings.LastIndexByte(file, ':')
		n, err := strconv.Atoi(file[i+1:])
		if i < 1 || err != nil || n < 1 {
			break
		}
		file, numbers = file[:i], append([]int{n}, numbers...)
	}
	if len(numbers) == 0 || filepath.Ext(file) != ".go" {
		return "", 0, false
	}
	return file, numbers[0], true
}

// printTopic prints a text with its name before it, in lines that fit a terminal.
// A word that is longer, such as a key, is not cut.
func printTopic(w io.Writer, name, text string) {
	const indent = "          "
	fmt.Fprintln(w, printed.Filled(text, name+indent[len(name):], indent, tableWidth))
}
