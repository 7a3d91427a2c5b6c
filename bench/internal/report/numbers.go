package report

import (
	"math"
	"strconv"
	"strings"
)

// significant returns a number with three digits that mean something.
func significant(x float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64)
	if err != nil || rounded == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(rounded))))
	return strconv.FormatFloat(rounded, 'f', max(digits, 0), 64)
}

// count returns a large number, with commas.
func count(x float64) string {
	s := significant(x)
	if strings.Contains(s, ".") {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// span returns a time given in seconds.
func span(seconds float64) string {
	for _, unit := range []struct {
		name string
		of   float64
	}{{" s", 1}, {" ms", 1e-3}, {" µs", 1e-6}} {
		if seconds >= unit.of {
			return significant(seconds/unit.of) + unit.name
		}
	}
	return significant(seconds*1e9) + " ns"
}
