package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
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

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		most float64
		want []float64
	}{
		{0, []float64{0}},
		{1_100_000, []float64{0, 200_000, 400_000, 600_000, 800_000, 1_000_000}},
		{3.9, []float64{0, 1, 2, 3}},
		{5, []float64{0, 1, 2, 3, 4, 5}},
		{74, []float64{0, 20, 40, 60}},
	} {
		if got := ticks(test.most); !slices.Equal(got, test.want) {
			t.Errorf("ticks to %v: got %v, want %v", test.most, got, test.want)
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

// TestChart wants the chart to be XML that names every limiter in every panel,
// with the length of a bar in proportion to what it stands for.
func TestChart(t *testing.T) {
	svg := Chart(result())
	var (
		words  strings.Builder
		widths = map[string][]string{}
	)
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			words.Write(token)
			words.WriteString("|")
		case xml.StartElement:
			attr := map[string]string{}
			for _, a := range token.Attr {
				attr[a.Name.Local] = a.Value
			}
			if token.Name.Local == "rect" {
				widths[attr["class"]] = append(widths[attr["class"]], attr["width"])
			}
		}
	}
	for _, l := range append(limiters.Rategen(), limiters.Peers()...) {
		if n := strings.Count(words.String(), "|"+l.Name+"|"); n < 3 {
			t.Errorf("%s is in %d of 3 panels", l.Name, n)
		}
	}
	for _, want := range []string{`<CPU> & "co"`, "denied 3 of <4>", "500,000  5.0×", "256 callers, one hot key admitted", "decisions per second", "× redis_rate"} {
		if !strings.Contains(words.String(), want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
	if len(widths["rategen"]) != 3*len(limiters.Rategen()) || slices.ContainsFunc(widths["rategen"], func(w string) bool { return w != "510.0" }) {
		t.Errorf("rategen's bars: %v", widths["rategen"])
	}
	if len(widths["floor"]) != 2*3 {
		t.Errorf("the bars of floors: %v", widths["floor"])
	}
	if len(widths["peer"]) != 3*6 || slices.ContainsFunc(widths["peer"], func(w string) bool { return w != "102.0" }) {
		t.Errorf("the bars of others: %v", widths["peer"])
	}
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
