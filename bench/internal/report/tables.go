package report

import (
	"fmt"
	"io"
	"time"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// Write writes all that was found in the last of some runs, and how the targets
// were reached in all of them.
func Write(w io.Writer, style Style, runs []*contest.Result) {
	result := runs[len(runs)-1]
	for _, fact := range result.Facts {
		if style == Markdown {
			fact = "- " + fact
		}
		fmt.Fprintln(w, fact)
	}
	fmt.Fprintln(w)
	if len(result.Shared) > 0 {
		heading(w, style, "Counts in Redis")
	}
	for i := range result.Shared {
		shared(&result.Shared[i]).write(w, style)
	}
	if len(result.Curve) > 0 {
		Curve(w, style, result.Curve)
	}
	if len(result.Sizes) > 0 {
		heading(w, style, "Size of a key in Redis")
		sizes(result.Sizes).write(w, style)
	}
	if len(result.Local) > 0 {
		heading(w, style, "Counts in memory")
	}
	for i := range result.Local {
		local(&result.Local[i]).write(w, style)
	}
	heading(w, style, "Targets")
	targets(runs).write(w, style)
	measured := "All of this was measured in one run"
	if len(runs) > 1 {
		measured = fmt.Sprintf("The targets are those of %d runs, one after the other. All else was measured in the last, a run", len(runs))
	}
	fmt.Fprintf(w, "%s of %v; the load average after it was %s.\n", measured, result.Took.Round(time.Second), result.Busy)
}

func heading(w io.Writer, style Style, s string) {
	if style == Markdown {
		s = "### " + s
	}
	fmt.Fprintf(w, "%s\n\n", s)
}

// shared returns the table of a case of limiters over Redis. Every × is
// compared with the base.
func shared(t *contest.Table) *grid {
	g := &grid{title: t.Case.String(), head: []string{"limiter", "decisions/s", "×", "p50", "×", "p99", "×",
		"Redis CPU", "×", "scripts", "commands", "client CPU", "allocs"}}
	if t.Case.Kind == contest.Full {
		g.head = append(g.head, "asked of Redis, a key a second")
	}
	base := t.Row(limiters.Base)
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Fault != "" {
			g.add(r.Name, r.Fault)
			continue
		}
		cells := []string{name(r)}
		for _, m := range []contest.Metric{contest.Rate, contest.P50, contest.P99, contest.ServerCPU} {
			format := span
			if m == contest.Rate {
				format = count
			}
			cells = append(cells, format(r.Value(m)), times(r.Value(m), base.Value(m)))
		}
		cells = append(cells, few(r.Value(contest.Scripts)), few(r.Value(contest.Commands)),
			span(r.Value(contest.ClientCPU)), few(r.Value(contest.Allocs)))
		if t.Case.Kind == contest.Full {
			cells = append(cells, count(r.Value(contest.Asked)))
		}
		g.add(cells...)
	}
	return g
}

// local returns the table of a case of limiters in memory.
func local(t *contest.Table) *grid {
	g := &grid{title: t.Case.String(), head: []string{"limiter", "a decision", "×", "client CPU", "allocs"}}
	base := t.Row(limiters.LocalBase)
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Fault != "" {
			g.add(r.Name, r.Fault)
			continue
		}
		g.add(name(r), span(r.Value(contest.PerOp)), times(r.Value(contest.PerOp), base.Value(contest.PerOp)),
			span(r.Value(contest.ClientCPU)), few(r.Value(contest.Allocs)))
	}
	return g
}

// name returns a limiter's name and what its numbers leave out.
func name(r *contest.Row) string {
	if r.GaveUp > 0 {
		return fmt.Sprintf("%s (%s %% of calls gave up)", r.Name, significant(100*r.GaveUp))
	}
	return r.Name
}

func sizes(all []contest.Size) *grid {
	g := &grid{head: []string{"limiter"}}
	for _, f := range contest.Fillings {
		g.head = append(g.head, f.String(), "bytes an event")
	}
	for _, s := range all {
		cells := []string{s.Name}
		for i, bytes := range s.Bytes {
			cells = append(cells, count(float64(bytes)), few(float64(bytes)/float64(contest.Fillings[i].Events)))
		}
		g.add(cells...)
	}
	return g
}
