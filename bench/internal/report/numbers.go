package report

import (
	"fmt"
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
	if seconds == 0 {
		return "0"
	}
	if seconds < 1e-6 {
		return significant(seconds*1e9) + " ns"
	}
	if seconds < 1e-3 {
		return significant(seconds*1e6) + " µs"
	}
	if seconds < 1 {
		return significant(seconds*1e3) + " ms"
	}
	return significant(seconds) + " s"
}

// times returns a ratio, or nothing if there is none.
func times(x, base float64) string {
	if x == 0 || base == 0 {
		return ""
	}
	ratio := x / base
	if ratio >= 9.95 {
		return fmt.Sprintf("%.0f×", ratio)
	}
	if ratio >= 0.95 {
		return fmt.Sprintf("%.1f×", ratio)
	}
	if ratio >= 0.005 {
		return fmt.Sprintf("%.2f×", ratio)
	}
	return "<0.01×"
}

// few returns a number of things of which there are few, or a share of one.
func few(x float64) string {
	if x == 0 {
		return "0"
	}
	if x < 0.001 {
		return "<0.001"
	}
	if x < 0.1 {
		return fmt.Sprintf("%.3f", x)
	}
	return fmt.Sprintf("%.1f", x)
}
