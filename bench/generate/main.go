/*
Generate measures how long rategen takes, beside other generators and beside
the least that reading the same packages with types can take.

Usage, in the directory bench:

	go run ./generate [-n runs] [-cpus n] [-others] [-warm]

It writes a module of 100 interfaces of 10 methods in 20 packages, each of which
imports net/http and go-redis, and runs each command on it in five cases:

	generate   the build cache is warm, no generated file is there
	empty      one of the packages, and the build cache is empty
	edited     one package has changed since the last run
	unchanged  nothing has
	memory     the peak of the largest process of the first case

The row "packages.Load" is the floor: it loads the packages with types and
syntax, from export data, and writes nothing. The row "rategen, no record" is
rategen with RATEGEN_CACHE=off. The row "go list" finds the packages and the export
data of what they import, with which a run begins. With -others, mockery and moq are
installed in a temporary directory and measured too. With -warm the case empty is left
out, which takes most of the time.

It prints medians of times and, in parentheses, of the seconds that processors were
used. The processes may use -cpus processors.
*/
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/rategen/rategen/internal/progress"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("generate: ")
	runs := flag.Int("n", 5, "how often each command runs in each case")
	cpus := flag.Int("cpus", 2, "how many processors a command may use")
	others := flag.Bool("others", false, "measure other generators too")
	warm := flag.Bool("warm", false, "leave out the case of an empty build cache")
	floor := flag.String("floor", "", "load the packages that `patterns` name, and exit")
	flag.Parse()
	if *floor != "" {
		if err := load(*floor); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := run(*runs, *cpus, *others, *warm); err != nil {
		log.Fatal(err)
	}
}

func run(runs, cpus int, others, warm bool) error {
	dir, err := os.MkdirTemp("", "generate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	checkout, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	c := &corpus{parent: dir, checkout: checkout}
	if err := c.enter("warm"); err != nil {
		return err
	}
	tools, err := ownTools(filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	if others {
		tools = append(tools, otherTools(filepath.Join(dir, "bin"))...)
	}
	// Fill the build cache.
	if out, err := c.command("go", "build", "./...").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %v\n%s", err, out)
	}
	version, err := exec.Command("go", "version").Output()
	if err != nil {
		return err
	}
	fmt.Printf("%s%d processors, medians of %d; %d interfaces of %d methods in %d packages\n\n", version, cpus, runs, packageCount*interfacesEach, methodsEach, packageCount)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tgenerate\tempty\tedited\tunchanged\tmemory\t")
	m := &measurement{corpus: c, tools: tools, runs: runs, cpus: cpus, warm: warm, line: progress.New(os.Stderr)}
	rows := m.table()
	m.line.Clear()
	for i, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t\n", tools[i].name, strings.Join(row, "\t"))
	}
	return table.Flush()
}
