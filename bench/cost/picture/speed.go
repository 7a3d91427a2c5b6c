package picture

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// speedCallers is how many callers the bars are for.
const speedCallers = "64"

// A bar is a limiter in the picture of speeds.
type bar struct {
	name, note string
	row        string // in the table of results
	ours       bool
	rate       int // decisions a second
}

func bars() []bar {
	return []bar{
		{name: "rategen, storage=packed", note: "exact", row: "rategen sliding-log packed", ours: true},
		{name: "rategen", note: "exact, the default", row: "rategen sliding-log zset", ours: true},
		{name: "fixed window over rueidis", note: "up to 2 × max in a window", row: "fixed window over rueidis"},
		{name: "redis_rate, AutoPipeline", note: "up to 2 × max in a window", row: "redis_rate over AutoPipeline"},
		{name: "redis_rate", note: "up to 2 × max in a window", row: "redis_rate"},
	}
}

// read sets the rates of bars by a page of results.
func read(page string, bars []bar) error {
	_, table, _ := strings.Cut(page, "**decisions per second**\n\n")
	lines := strings.Split(table, "\n")
	column := 0
	for i, name := range strings.Split(lines[0], " | ") {
		if strings.Trim(name, "| ") == speedCallers {
			column = i
		}
	}
	for i := range bars {
		for _, line := range lines {
			if cells := strings.Split(line, " | "); column > 0 && strings.Trim(cells[0], "| ") == bars[i].row {
				rate, err := strconv.Atoi(strings.ReplaceAll(strings.Trim(cells[column], "| "), ",", ""))
				if err != nil {
					return fmt.Errorf("%s: %w", bars[i].row, err)
				}
				bars[i].rate = rate
				break
			}
		}
		if bars[i].rate == 0 {
			return fmt.Errorf("no decisions a second of %s with %s callers", bars[i].row, speedCallers)
		}
	}
	return nil
}

// drawSpeed returns the picture of bars, the longest of which ends at the right margin.
func drawSpeed(bars []bar) []byte {
	const first, step, thick, begin, end = 58, 44, 26, 240, 800
	most := 0
	for _, l := range bars {
		most = max(most, l.rate)
	}
	var b bytes.Buffer
	card(&b, first+len(bars)*step, "Exact decisions a second beside others")
	text(&b, 20, 28, "title", "Decisions a second by one Redis, "+speedCallers+" callers, 1,000 keys, two cores in all")
	for i, l := range bars {
		y := float64(first + i*step)
		text(&b, 20, y+10, "name", l.name)
		text(&b, 20, y+26, "note", l.note)
		class := "peer"
		if l.ours {
			class = "area"
		}
		length := float64(end-begin) * float64(l.rate) / float64(most)
		fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>\n", class, begin, y, length, thick)
		text(&b, begin+length+8, y+18, "name", thousands(l.rate))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// thousands writes a number with a comma before its last three digits.
func thousands(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
