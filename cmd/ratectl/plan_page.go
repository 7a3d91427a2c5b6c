package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/replay"
)

//go:embed plan.html
var planHTML string

var planPage = template.Must(template.New("plan").Funcs(template.FuncMap{
	"percent":  func(n, of int64) string { return percent(replay.Ratio(n, of)) },
	"time":     func(t time.Time) string { return t.Format(time.RFC3339) },
	"known":    func(t time.Time) bool { return !t.IsZero() },
	"refusals": refusals, "callers": callersByUse, "hit": whoIsHit,
}).Parse(planHTML))

func writePage(path string, r *replay.Result) error {
	var page bytes.Buffer
	if err := planPage.Execute(&page, r); err != nil {
		return err
	}
	return os.WriteFile(path, page.Bytes(), 0o666)
}

const chartWidth, chartHeight = 600, 120

type chart struct {
	Lines []string // points
	Bars  []bar
	Top   string // what the upper edge stands for
	Limit float64
	About string
}

type bar struct {
	X, Y, Width, Height float64
	Over                bool
	About               string
}

func refusals(of *replay.Rule) *chart {
	top := int64(1)
	for _, n := range of.Refused {
		top = max(top, n[0], n[1])
	}
	c := &chart{Top: fmt.Sprint(top), About: fmt.Sprintf("refusals over the time: %d before, %d after", of.Before.Refused, of.After.Refused)}
	for which := range 2 {
		var points strings.Builder
		for i, n := range of.Refused {
			fmt.Fprintf(&points, "%.1f,%.1f ", float64(i)*chartWidth/float64(len(of.Refused)-1), chartHeight*(1-float64(n[which])/float64(top)))
		}
		c.Lines = append(c.Lines, points.String())
	}
	return c
}

// callersByUse returns how many callers used about so much of the limit at most, in steps that
// double.
func callersByUse(of *replay.Rule) *chart {
	if len(of.Peaks) == 0 {
		return nil
	}
	step := func(n int64) int { return int(math.Log2(float64(max(n, 1)))) }
	bins := make([]int64, step(max(slices.Max(of.Peaks), of.Limit))+1)
	for _, n := range of.Peaks {
		bins[step(n)]++
	}
	top, width := slices.Max(bins), chartWidth/float64(len(bins))
	c := &chart{Top: fmt.Sprint(top), About: fmt.Sprintf("callers by the most that they used in a window; the limit is %d", of.Limit),
		Limit: width * math.Log2(float64(max(of.Limit, 1)))}
	for i, n := range bins {
		// By the logarithm of how many there are: one among thousands is to be seen.
		height := chartHeight * math.Log1p(float64(n)) / math.Log1p(float64(top))
		low := int64(1) << i
		c.Bars = append(c.Bars, bar{float64(i)*width + 1, chartHeight - height, max(1, width-2), height, low >= of.Limit,
			fmt.Sprintf("%d to %d: %d callers", low, 2*low-1, n)})
	}
	return c
}

func whoIsHit(of *replay.Rule) *chart {
	if len(of.Sides) == 0 {
		return nil
	}
	top := int64(1)
	for _, s := range of.Sides {
		top = max(top, s.Was, s.Now)
	}
	c := &chart{Top: fmt.Sprint(top), About: "refusals of the callers that change most, before and after"}
	width := chartWidth / float64(len(of.Sides))
	for i, s := range of.Sides {
		for which, n := range []int64{s.Was, s.Now} {
			height := chartHeight * float64(n) / float64(top)
			c.Bars = append(c.Bars, bar{(float64(i) + float64(which)*0.45 + 0.05) * width, chartHeight - height, 0.4 * width, height, which == 1,
				fmt.Sprintf("%s: %d before, %d after", s.Caller, s.Was, s.Now)})
		}
	}
	return c
}
