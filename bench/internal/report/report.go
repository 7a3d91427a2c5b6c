// Package report writes what a contest has found, in Markdown. All numbers are medians.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// Callers writes the page of the curve of callers.
func Callers(w io.Writer, result *contest.Result) {
	fmt.Fprint(w, "# How many callers\n\nWritten by `cd bench && go run ./compare -cases '^curve ' -write ..`. What the limiters are\n"+
		"stands in [the comparison](compare.md#what-is-compared). Every number is the median of the rounds.\n\n")
	facts(w, result)
	Curve(w, result.Curve)
}

// Curve writes how limiters over Redis do with ever more callers on 1,000 keys.
func Curve(w io.Writer, tables []contest.Table) {
	const hand = ", × what is written by hand, and the middle half of the rounds"
	beside := func(m contest.Metric, other func(*contest.Row) string) func(*contest.Row, *contest.Table) string {
		return func(row *contest.Row, t *contest.Table) string {
			ratio, low, high := row.Beside(t.Row(other(row)), m)
			if ratio == 0 || row.Name == other(row) {
				return ""
			}
			return fmt.Sprintf("%.2f (%.2f–%.2f)", ratio, low, high)
		}
	}
	byHand := func(row *contest.Row) string { return row.ByHand }
	bucket := func(*contest.Row) string { return limiters.RategenBucket }
	for _, part := range []struct {
		title string
		cell  func(*contest.Row, *contest.Table) string
	}{
		{"decisions per second", func(row *contest.Row, _ *contest.Table) string {
			return count(row.Value(contest.Rate)) + gaveUp(row)
		}},
		{"decisions per second" + hand, beside(contest.Rate, byHand)},
		{"p50", func(row *contest.Row, _ *contest.Table) string { return span(row.Value(contest.P50)) }},
		{"p99", func(row *contest.Row, _ *contest.Table) string { return span(row.Value(contest.P99)) }},
		{"Redis's processor time a decision", func(row *contest.Row, _ *contest.Table) string { return span(row.Value(contest.ServerCPU)) }},
		{"Redis's processor time a decision, × " + limiters.RategenBucket, beside(contest.ServerCPU, bucket)},
	} {
		cases(w, "**"+part.title+"**", "callers", tables, func(c contest.Case) string { return fmt.Sprint(c.Callers) }, part.cell)
	}
}

// Write writes all else.
func Write(w io.Writer, result *contest.Result) {
	facts(w, result)
	cases(w, "### Counts in Redis", "decisions per second, × "+limiters.Base, result.Shared, contest.Case.String, func(row *contest.Row, t *contest.Table) string {
		return count(row.Value(contest.Rate)) + times(row, t.Base(), contest.Rate) + gaveUp(row)
	})
	if len(result.Sizes) > 0 {
		sizes(w, result.Sizes)
	}
	cases(w, "### Counts in memory", "a decision, × "+limiters.LocalBase, result.Local, contest.Case.String, func(row *contest.Row, t *contest.Table) string {
		return span(row.Value(contest.PerOp)) + times(row, t.Base(), contest.PerOp)
	})
}

func facts(w io.Writer, result *contest.Result) {
	for _, fact := range result.Facts {
		fmt.Fprintln(w, "- "+fact)
	}
	fmt.Fprintf(w, "- Load average after: %s\n\n", result.Busy)
}

// cases writes a table of some cases, of which each is a column. A cell is what there is to say
// about a limiter's row in the table of a case. A limiter of which there is nothing to say has no row.
func cases(w io.Writer, title, corner string, tables []contest.Table, heading func(contest.Case) string, cell func(*contest.Row, *contest.Table) string) {
	if len(tables) == 0 {
		return
	}
	lines := [][]string{{corner}}
	var names []string
	for i := range tables {
		lines[0] = append(lines[0], heading(tables[i].Case))
		for _, row := range tables[i].Rows {
			if !slices.Contains(names, row.Name) {
				names = append(names, row.Name)
			}
		}
	}
	for _, name := range names {
		cells := []string{name}
		for i := range tables {
			row, text := tables[i].Row(name), ""
			if row != nil && row.Fault != "" {
				text = row.Fault
			} else if row != nil {
				text = cell(row, &tables[i])
			}
			cells = append(cells, text)
		}
		if slices.ContainsFunc(cells[1:], func(s string) bool { return s != "" }) {
			lines = append(lines, cells)
		}
	}
	table(w, title, lines)
}

func sizes(w io.Writer, all []contest.Size) {
	lines := [][]string{{"bytes of a key"}}
	for _, f := range contest.Fillings {
		lines[0] = append(lines[0], f.String())
	}
	for _, s := range all {
		cells := []string{s.Name}
		for _, bytes := range s.Bytes {
			cells = append(cells, count(float64(bytes)))
		}
		lines = append(lines, cells)
	}
	table(w, "### Size of a key in Redis", lines)
}

func table(w io.Writer, title string, lines [][]string) {
	fmt.Fprintf(w, "%s\n\n", title)
	for i, cells := range lines {
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(cells)-1))
		}
	}
	fmt.Fprintln(w)
}

// gaveUp returns the share of calls that had no decision, if there are any.
func gaveUp(row *contest.Row) string {
	if row.GaveUp == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s %% gave up)", significant(100*row.GaveUp))
}

// times returns how a metric compares with that of the limiter that all are compared with.
func times(row, base *contest.Row, m contest.Metric) string {
	if base == nil || row.Name == base.Name || base.Value(m) == 0 {
		return ""
	}
	ratio := row.Value(m) / base.Value(m)
	switch {
	case ratio >= 9.95:
		return fmt.Sprintf(" (%.0f×)", ratio)
	case ratio >= 0.95:
		return fmt.Sprintf(" (%.1f×)", ratio)
	}
	return fmt.Sprintf(" (%.2f×)", ratio)
}
