package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// Callers writes the page of the curve of callers.
func Callers(w io.Writer, result *contest.Result) {
	fmt.Fprint(w, "# How many callers\n\nWritten by `cd bench && go run ./compare -cases '^curve ' -write ..`. What the limiters are, and\n"+
		"how they are measured, stands in [the comparison](compare.md#what-is-compared). Ratios are medians\n"+
		"of the ratios within each round, and in brackets the middle half of these.\n\n")
	for _, fact := range result.Facts[:2] {
		fmt.Fprintln(w, "- "+fact)
	}
	fmt.Fprintf(w, "- Load average after: %s\n\n", result.Busy)
	Curve(w, Markdown, result.Curve)
}

// Curve writes how limiters over Redis do with ever more callers: decisions per
// second, and how these and p50 compare with what is written by hand.
func Curve(w io.Writer, style Style, tables []contest.Table) {
	heading(w, style, "Curve of callers, 1,000 keys admitted")
	for _, part := range []struct {
		title string
		cell  func(*contest.Table, *contest.Row) string
	}{
		{"decisions per second", func(_ *contest.Table, row *contest.Row) string {
			if row.GaveUp > 0 {
				return fmt.Sprintf("%s (%s %% gave up)", count(row.Value(contest.Rate)), significant(100*row.GaveUp))
			}
			return count(row.Value(contest.Rate))
		}},
		{"decisions per second, × " + byHand, besideHand(contest.Rate)},
		{"p50", func(_ *contest.Table, row *contest.Row) string { return span(row.Value(contest.P50)) }},
		{"p50, × " + byHand, besideHand(contest.P50)},
		{"trips a decision", func(_ *contest.Table, row *contest.Row) string { return few(row.Value(contest.Scripts)) }},
		{"Redis CPU a decision", func(_ *contest.Table, row *contest.Row) string { return span(row.Value(contest.ServerCPU)) }},
		{"Redis CPU a decision, × " + limiters.RategenFixed + ", and the middle half of the rounds", besideRow(limiters.RategenFixed, contest.ServerCPU)},
		{"client CPU a decision", func(_ *contest.Table, row *contest.Row) string { return span(row.Value(contest.ClientCPU)) }},
		{"allocations a decision", func(_ *contest.Table, row *contest.Row) string { return few(row.Value(contest.Allocs)) }},
	} {
		g := &grid{title: part.title, head: []string{"callers"}}
		for i := range tables {
			g.head = append(g.head, fmt.Sprint(tables[i].Case.Callers))
		}
		for i := range tables[0].Rows {
			cells := []string{tables[0].Rows[i].Name}
			for j := range tables {
				cells = append(cells, part.cell(&tables[j], &tables[j].Rows[i]))
			}
			if slices.ContainsFunc(cells[1:], func(s string) bool { return s != "" }) {
				g.add(cells...)
			}
		}
		g.write(w, style)
	}
}

// byHand heads what compares a limiter with what a user would write in its place: its script sent by
// go-redis, a trip a call, or a window over the same client.
const byHand = "what is written by hand, and the middle half of the rounds"

// besideHand returns what writes a metric as a multiple of that of the row that the row names.
func besideHand(m contest.Metric) func(*contest.Table, *contest.Row) string {
	return func(table *contest.Table, row *contest.Row) string {
		return besideRow(row.ByHand, m)(table, row)
	}
}

// besideRow returns what writes a metric as a multiple of that of another row, if that was
// measured.
func besideRow(name string, m contest.Metric) func(*contest.Table, *contest.Row) string {
	return func(table *contest.Table, row *contest.Row) string {
		base := table.Row(name)
		if base == nil {
			return ""
		}
		median, low, high := row.Beside(base, m)
		if median == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f (%.2f–%.2f)", median, low, high)
	}
}
