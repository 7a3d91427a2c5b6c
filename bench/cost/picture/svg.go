package picture

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// The measures of a plot in pixels.
const (
	left     = 190
	right    = 880
	plot     = 56 // height
	perCount = plot / 44.0
)

//go:embed pictures.svg.tmpl
var source string

var pictures = template.Must(template.New("").Parse(source))

// draw returns a picture.
func draw(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	err := pictures.ExecuteTemplate(&b, name, data)
	return b.Bytes(), err
}

// algorithms is what the picture shows of lanes that have run.
func algorithms(lanes []*lane) any {
	for i, l := range lanes {
		l.Y = 92 + 98*i
	}
	return struct {
		Max    int
		Window time.Duration
		Lanes  []*lane
	}{maximum, window, lanes}
}

// Most is the most calls that ever passed in a window.
func (l *lane) Most() int {
	_, most := l.steps()
	return most
}

// Through says how many calls a limit let through.
func (l *lane) Through() string {
	if l.rule == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d", len(l.passed), len(l.passed)+len(l.refused))
}

// Area is the outline of the counts, up to the limit where there is one, and Over of those above it.
func (l *lane) Area() string {
	if l.rule == nil {
		return l.area(0, l.Most())
	}
	return l.area(0, maximum)
}

func (l *lane) Over() string {
	if l.rule == nil || l.Most() <= maximum {
		return ""
	}
	return l.area(maximum, l.Most())
}

// area returns the outline of the counts between low and high.
func (l *lane) area(low, high int) string {
	var d strings.Builder
	bottom := plot - float64(low)*perCount
	fmt.Fprintf(&d, "M%d %.1f", left, bottom)
	steps, _ := l.steps()
	for _, s := range steps {
		fmt.Fprintf(&d, "H%.1fV%.1f", x(min(s.at, length)), plot-float64(min(max(s.count, low), high))*perCount)
	}
	fmt.Fprintf(&d, "V%.1fZ", bottom)
	return d.String()
}

// Passed and Refused are a stroke for each call.
func (l *lane) Passed() string  { return strokes(l.passed, plot+4) }
func (l *lane) Refused() string { return strokes(l.refused, plot+14) }

func strokes(calls []time.Duration, y int) string {
	var d strings.Builder
	for _, at := range calls {
		fmt.Fprintf(&d, "M%.1f %dv8", x(at), y)
	}
	return d.String()
}

func x(t time.Duration) float64 {
	return left + (right-left)*t.Seconds()/length.Seconds()
}
