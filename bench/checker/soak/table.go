package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// lines is about how many lines a table has.
const lines = 20

// A row is what was found in a round.
type row struct {
	verdict
	report
	memory, keys int64 // of the servers
	happened     string
}

// A table has what was found in all rounds.
type table struct {
	config
	product       string
	begin         time.Time
	rows          []row
	sum           verdict
	visits, kills int
}

func (t *table) add(r row) {
	t.sum.add(&r.verdict)
	t.rows = append(t.rows, r)
}

// write writes the table in Markdown, and what it means. It returns an error if
// something is not as it should be.
func (t *table) write(w io.Writer) error {
	fmt.Fprintf(w, "%s, %d rounds of %v from %s on, %.0f calls a second. %d processes came and went, %d more were killed.\n\n",
		t.product, len(t.rows), t.round, t.begin.UTC().Format("2006-01-02 15:04 UTC"),
		float64(t.sum.Calls)/(time.Duration(len(t.rows))*t.round).Seconds(), t.visits-t.kills, t.kills)
	fmt.Fprintln(w, "| until | calls | judged exactly | by bounds | undecided | over | spurious | wrong | heap kB | resident MB | goroutines | Redis MB | keys | what happened |")
	fmt.Fprintln(w, "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")
	each := (len(t.rows) + lines - 1) / lines
	for i := 0; i < len(t.rows); i += each {
		part := t.rows[i:min(i+each, len(t.rows))]
		t.line(w, time.Duration(i+len(part))*t.round, part)
	}
	fmt.Fprintf(w, "| **all** | %d | %d | %d | %d | %d | %d | %d |\n\n", t.sum.Calls, t.sum.Exact, t.sum.Bounds, t.sum.Undecided, t.sum.Over, t.sum.Spurious, t.sum.Wrong)
	wrong := slices.Clone(t.sum.notes)
	if t.sum.faults() > len(wrong) {
		wrong = append(wrong, fmt.Sprintf("%d decisions were wrong in all", t.sum.faults()))
	}
	if t.sum.Exact == 0 || t.sum.Bounds == 0 {
		wrong = append(wrong, "no call was judged exactly, or none by its bounds: the run proves nothing")
	}
	growth, err := t.growth()
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	fmt.Fprintln(w, growth)
	if len(wrong) > 0 {
		return errors.New("FAIL\n" + strings.Join(wrong, "\n"))
	}
	judged := t.sum.Exact + t.sum.Bounds
	fmt.Fprintf(w, "\nNo decision of the %d that were judged was wrong. %d were not judged: of a key whose calls are judged exactly, a call was undecided or a count was lost.\n",
		judged, t.sum.Calls-judged)
	return nil
}

// line writes what was found in some rounds, and the state after the last.
func (t *table) line(w io.Writer, until time.Duration, part []row) {
	var v verdict
	var happened []string
	for i := range part {
		v.add(&part[i].verdict)
		if part[i].happened != "-" {
			happened = append(happened, part[i].happened)
		}
	}
	last := part[len(part)-1]
	fmt.Fprintf(w, "| %v | %d | %d | %d | %d | %d | %d | %d | %d | %.1f | %d | %.1f | %d | %s |\n",
		until, v.Calls, v.Exact, v.Bounds, v.Undecided, v.Over, v.Spurious, v.Wrong,
		last.Heap/1000, float64(last.Resident)/1e6, last.Goroutines, float64(last.memory)/1e6, last.keys, strings.Join(happened, ", "))
}

// growth says how much the medians of the last third of the rounds differ from those
// of the third before, and returns an error if something grew by more than its share
// and what comes and goes. The first third is left out: programs grow into their
// work. Scripts of mixtures of algorithms and remembered denials fill up to their
// bounds, and go-redis opens connections at faults.
func (t *table) growth() (string, error) {
	third := len(t.rows) / 3
	if third < 4 {
		return "The run is too short to say whether memory grows.", nil
	}
	var said, grown []string
	for _, m := range []struct {
		name    string
		unit    float64
		of      func(*row) int64
		share   int64 // of what there was, in percent
		comings int64 // what comes and goes
	}{
		{"heap kB", 1e3, func(r *row) int64 { return r.Heap }, 1, 100e3},
		{"resident MB", 1e6, func(r *row) int64 { return r.Resident }, 10, 3e6},
		{"goroutines", 1, func(r *row) int64 { return r.Goroutines }, 10, 4},
		{"Redis MB", 1e6, func(r *row) int64 { return r.memory }, 10, 5e6},
		{"keys", 1, func(r *row) int64 { return r.keys }, 10, 100},
	} {
		before, after := median(t.rows[third:2*third], m.of), median(t.rows[2*third:], m.of)
		text := fmt.Sprintf("%s %.1f and %.1f", m.name, float64(before)/m.unit, float64(after)/m.unit)
		said = append(said, text)
		if after > before+before*m.share/100+m.comings {
			grown = append(grown, text)
		}
	}
	text := "Medians of the second and of the last third: " + strings.Join(said, ", ") + "."
	if len(grown) > 0 {
		return text, errors.New("grown: " + strings.Join(grown, ", "))
	}
	return text + " Nothing grew.", nil
}

func median(rows []row, of func(*row) int64) int64 {
	var all []int64
	for i := range rows {
		all = append(all, of(&rows[i]))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
