package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rategen/rategen/bench/internal/contest"
)

// options are what the command line asks for.
type options struct {
	plan     contest.Plan
	cores    int
	checkout string // to write into, or empty
}

// parse reads a command line. It writes what is wrong with a flag, and the flags
// that there are, to w.
func parse(args []string, w io.Writer) (options, error) {
	o := options{plan: contest.Whole}
	part := contest.Part{Only: regexp.MustCompile(""), Cases: regexp.MustCompile("")}
	flags := flag.NewFlagSet(os.Args[0], flag.ContinueOnError)
	flags.SetOutput(w)
	quick := flags.Bool("quick", false, "one short round")
	flags.IntVar(&o.cores, "cores", 0, "cores for this program and redis-server together, 0 for all")
	flags.StringVar(&o.checkout, "write", "", "checkout to write the numbers into")
	flags.TextVar(part.Only, "only", part.Only, "limiters to measure, a regular expression for their names; those that they are compared with are measured as well")
	flags.TextVar(part.Cases, "cases", part.Cases, "cases to measure, a regular expression for their headings, such as \"over Redis, 1 caller, 1,000 keys admitted\", \"in memory, 64 callers, 100,000 keys, all refused\" and \"size of a key in Redis\"")
	var callers []int
	flags.Func("callers", "numbers of callers, with commas between, of which the curve is made; nothing else is measured then unless -cases says so", func(s string) error {
		for field := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(field)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number of callers", field)
			}
			callers = append(callers, n)
		}
		return nil
	})
	rounds := flags.Int("rounds", 0, fmt.Sprintf("rounds of each case of the curve, 0 for %d", contest.Whole.RoundsCurve))
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if *quick {
		o.plan = contest.Quick
	}
	if len(callers) > 0 {
		o.plan.Callers = callers
		if part.Cases.String() == "" {
			part.Cases = regexp.MustCompile(contest.OnlyCurve)
		}
	}
	if *rounds > 0 {
		o.plan.RoundsCurve = *rounds
	}
	o.plan.Part = part
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.checkout != "" && !part.Whole() && !part.Curve() {
		return options{}, errors.New("-write needs all numbers, or those of the curve: leave out -only, and -cases but for -cases '^curve '")
	}
	return o, o.plan.Check()
}
