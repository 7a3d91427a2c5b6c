package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

func TestNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{significant(0), "0"}, {significant(1234), "1230"}, {significant(0.98765), "0.988"}, {significant(9.999), "10.0"}, {significant(-103.4), "-103"},
		{count(12), "12.0"}, {count(999.6), "1,000"}, {count(1234567), "1,230,000"}, {count(100000), "100,000"},
		{span(0), "0"}, {span(4.25e-8), "42.5 ns"}, {span(0.00012345), "123 µs"}, {span(0.5), "500 ms"}, {span(2), "2.00 s"},
		{times(10, 2), "5.0×"}, {times(1000, 2), "500×"}, {times(1, 3), "0.33×"}, {times(1, 3000), "<0.01×"}, {times(1, 0), ""}, {times(0, 1), ""},
		{few(0), "0"}, {few(0.0001), "<0.001"}, {few(0.0521), "0.052"}, {few(4), "4.0"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestGrid(t *testing.T) {
	g := &grid{title: "T", head: []string{"name", "a", "µs"}}
	g.add("x", "1", "23")
	g.add("longer", "wrong")
	var text, markdown bytes.Buffer
	g.write(&text, Text)
	g.write(&markdown, Markdown)
	if want := "T\n  name        a  µs\n  x           1  23\n  longer  wrong\n\n"; text.String() != want {
		t.Errorf("text:\n%s\nwant:\n%s", text.String(), want)
	}
	if want := "**T**\n\n| name | a | µs |\n|---|---:|---:|\n| x | 1 | 23 |\n| longer | wrong | |\n\n"; markdown.String() != want {
		t.Errorf("Markdown:\n%s\nwant:\n%s", markdown.String(), want)
	}
}

// result returns one where rategen's limiters make five decisions in the time
// in which the base makes one, and one of the others is at fault.
func result() *contest.Result {
	r := &contest.Result{Facts: []string{`Machine: 2 cores, <CPU> & "co"`}}
	for _, c := range contest.SharedCases {
		table := contest.Table{Case: c}
		for _, l := range append(limiters.Rategen(), limiters.Peers()...) {
			row := contest.Row{Name: l.Name, Own: l.Own, Floor: l.Floor}
			rate := 1e5
			if l.Own {
				rate = 5e5
			}
			row.Set(contest.Rate, rate)
			row.Set(contest.P99, 1/rate)
			if l.Name == "throttled" {
				row.Fault = "denied 3 of <4>"
			}
			table.Rows = append(table.Rows, row)
		}
		r.Shared = append(r.Shared, table)
	}
	return r
}

func TestWrite(t *testing.T) {
	lines := linesOf(result())
	for _, want := range []string{
		"Counts in Redis",
		"throttled denied 3 of <4>",
		"target wanted reached",
		"decisions/s, 256 callers, 1,000 keys, sliding-counter ≥ 5 × redis_rate 5.00 yes",
		"a denial known of Redis ≤ 100 ns not measured",
	} {
		if !lines[want] {
			t.Errorf("there is no line %q", want)
		}
	}
	for _, empty := range []string{"Size of a key in Redis", "Counts in memory"} {
		if lines[empty] {
			t.Errorf("there is a heading %q over nothing", empty)
		}
	}
	var summary bytes.Buffer
	Summary(&summary, result())
	for _, want := range []string{"| rategen token-bucket | 500,000 (5.0×) |", "| rategen sliding-log packed | 500,000 (5.0×) |"} {
		if !strings.Contains(summary.String(), want) {
			t.Errorf("there is no %q in\n%s", want, summary.String())
		}
	}
}

// linesOf returns the lines that are written about some runs, with one blank
// where there are several.
func linesOf(runs ...*contest.Result) map[string]bool {
	var text bytes.Buffer
	Write(&text, Text, runs)
	lines := map[string]bool{}
	for line := range strings.Lines(text.String()) {
		lines[strings.Join(strings.Fields(line), " ")] = true
	}
	return lines
}
