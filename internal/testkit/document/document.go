// Package document runs behavior that is written as documents: files of scenarios, whose steps
// have the answers beside them that are expected. A scenario begins with a line
//
//	test NAME ARGUMENTS
//	----
//
// and ends with an empty line. A line of it is a remark after #, or a step, and behind an arrow
// the answer. Scenarios are played in several worlds, say for each algorithm. Where the answer
// depends on the world it is that of most, and below it stand those of others:
//
//	take k 3 -> 7 left
//	  queue, token bucket: 4 left
//
// With -update the answers become those that are given.
package document

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

var update = flag.Bool("update", false, "accept the answers of documents")

// A Scenario is one of a document.
type Scenario struct {
	Name  string
	Args  []Arg
	Lines []*Line
	file  string
}

// An Arg is one that a scenario begins with, as in name or name=value or name=(value, value).
type Arg struct {
	Name   string
	Values []string
}

// Arg returns the values of an argument, and whether there is one.
func (s *Scenario) Arg(name string) (values []string, is bool) {
	i := slices.IndexFunc(s.Args, func(a Arg) bool { return a.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.Args[i].Values, true
}

// Read returns the scenarios of the files that match a pattern. With -update they are written
// when the test and those in it have ended.
func Read(t *testing.T, pattern string) (all []*Scenario) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents are %s: %v", pattern, err)
	}
	_ = flag.Set("datadriven-quiet", "true")
	for _, file := range files {
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "test" || len(d.CmdArgs) == 0 || d.Input != "" {
				t.Fatalf("%s: a scenario begins with: test NAME", d.Pos)
			}
			s := &Scenario{Name: d.CmdArgs[0].Key, file: file}
			for _, a := range d.CmdArgs[1:] {
				s.Args = append(s.Args, Arg{a.Key, a.Vals})
			}
			at := 0 // the number of the scenario's first line in the file
			_, _ = fmt.Sscanf(d.Pos[strings.LastIndexByte(d.Pos, ':')+1:], "%d", &at)
			for i, text := range strings.Split(strings.TrimSuffix(d.Expected, "\n"), "\n") {
				names, answer, _ := strings.Cut(text, ": ")
				if strings.HasPrefix(text, indent) {
					l := s.Lines[len(s.Lines)-1]
					l.told = append(l.told, told{strings.Split(names[len(indent):], ", "), answer})
					l.text += "\n" + text
					continue
				}
				s.Lines = append(s.Lines, read(text, fmt.Sprintf("%s:%d", file, at+2+i)))
			}
			all = append(all, s)
			return d.Expected
		})
	}
	if *update {
		t.Cleanup(func() {
			if !t.Failed() {
				accept(t, files, all)
			}
		})
	}
	return all
}

// accept writes the answers that were given.
func accept(t *testing.T, files []string, all []*Scenario) {
	if err := flag.Set("rewrite", "true"); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		datadriven.RunTest(t, file, func(*testing.T, *datadriven.TestData) string {
			s := all[0]
			all = all[1:]
			var text strings.Builder
			for _, l := range s.Lines {
				text.WriteString(l.render() + "\n")
			}
			return text.String()
		})
	}
	_ = flag.Set("rewrite", "false")
}
