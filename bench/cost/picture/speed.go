package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// speedCallers is how many callers the bars are for.
const speedCallers = "64"

// A bar is a limiter in the picture of speeds.
type bar struct {
	Name, Note string
	row        string // in the table of results
	Class      string // "area" if it is ours
	Y          int    // in the picture
	rate       int    // decisions a second
	Length     float64
}

// Shown is the rate with a comma before its last three digits, and End is where it stands.
func (b *bar) Shown() string { return fmt.Sprintf("%d,%03d", b.rate/1000, b.rate%1000) }
func (b *bar) End() float64  { return b.Length + 248 }

func bars() []*bar {
	return []*bar{
		{Name: "rategen, storage=packed", Note: "exact", row: "rategen sliding-log packed", Class: "area"},
		{Name: "rategen", Note: "exact, the default", row: "rategen sliding-log zset", Class: "area"},
		{Name: "fixed window over rueidis", Note: "up to 2 × max in a window", row: "fixed window over rueidis", Class: "peer"},
		{Name: "redis_rate, AutoPipeline", Note: "up to 2 × max in a window", row: "redis_rate over AutoPipeline", Class: "peer"},
		{Name: "redis_rate", Note: "up to 2 × max in a window", row: "redis_rate", Class: "peer"},
	}
}

// read sets the rates of bars by a page of results. The longest ends at the right margin.
func read(page string, bars []*bar) error {
	_, table, _ := strings.Cut(page, "**decisions per second**\n\n")
	heading, table, _ := strings.Cut(table, "\n")
	column := slices.Index(strings.Split(heading, " | "), speedCallers)
	most := 0
	for i, b := range bars {
		_, row, _ := strings.Cut(table, "| "+b.row+" | ")
		cells := strings.Split(b.row+" | "+row, " | ")
		if column < 1 || column >= len(cells) {
			return fmt.Errorf("no decisions a second of %s with %s callers", b.row, speedCallers)
		}
		rate, err := strconv.Atoi(strings.ReplaceAll(cells[column], ",", ""))
		if err != nil {
			return fmt.Errorf("%s: %w", b.row, err)
		}
		b.rate, b.Y = rate, 58+44*i
		most = max(most, rate)
	}
	for _, b := range bars {
		b.Length = 560 * float64(b.rate) / float64(most)
	}
	return nil
}
