package directive

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// rate is a value that stands for two options.
type rate struct{ max, window Value }

// parseRate reads a max and a window, as in 5/10s. The number of the window may be
// left out if it is 1: 100/s.
func parseRate(v Value) (rate, error) {
	i := strings.LastIndexByte(v.Text, '/')
	if i <= 0 || i == len(v.Text)-1 {
		return rate{}, fmt.Errorf("%q is not a rate: write one such as 5/10s, 100/s or #plan.PerMinute/1m", v.Text)
	}
	r := rate{
		max:    Value{Pos: v.Pos, Text: v.Text[:i], Exact: v.Exact},
		window: Value{Pos: v.At(i + 1), Text: v.Text[i+1:], Exact: v.Exact},
	}
	switch r.window.Text {
	case "ms", "s", "m", "h", "d":
		r.window = Value{Pos: r.window.Pos, Text: "1" + r.window.Text}
	}
	return r, nil
}

var rateText = regexp.MustCompile(`^[0-9_]+/[0-9]*(ms|s|m|h|d)$`)

// maxOrRate is the parse column of max. It refuses what is meant as a rate.
func maxOrRate(v Value) (any, error) {
	if rateText.MatchString(v.Text) {
		err := fmt.Errorf("%s is a rate: write rate=%s", v.Text, v.Text)
		v.Text, _, _ = strings.Cut(v.Text, "/")
		return v, err
	}
	return v, nil
}

// assignments returns the options that a rate stands for.
func (r rate) assignments(a assignment) []assignment {
	return []assignment{{name: "max", pos: a.pos, value: r.max}, {name: "window", pos: a.pos, value: r.window}}
}

func rateFits(s *Settings) error {
	for _, name := range []string{"max", "window"} {
		if s.written[name] {
			return errors.New("rate stands for max and window: remove rate, or " + name)
		}
	}
	return periodFits(s)
}
