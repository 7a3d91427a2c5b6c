package directive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	_ "time/tzdata" // so that a directive is right or wrong on every machine alike

	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/internal/spec"
)

// An anchor is where periods begin, as it is written and as a number.
type anchor struct {
	text string
	n    int64
}

// period reads the name of a period of the calendar.
func period(text string) (any, bool) {
	unit := spec.UnitOf(text)
	return unit, unit != spec.NoUnit
}

// Period returns the period of the calendar that the max refers to, or NoUnit for a
// Window.
func (s *Settings) Period() spec.Unit { return get[spec.Unit](s, "window") }

// Per returns the time that the max refers to.
func (s *Settings) Per() string {
	if unit := s.Period(); unit != spec.NoUnit {
		return unit.String()
	}
	return spec.DurationText(s.Window())
}

// Zone and Anchor return what the directive says, where it is no expression.
func (s *Settings) Zone() string  { return get[string](s, "tz") }
func (s *Settings) Anchor() int64 { return get[anchor](s, "anchor").n }

func periodFits(s *Settings) error {
	if s.Period() == spec.NoUnit {
		return nil
	}
	return s.rule().FitsPeriod()
}

func periodCode(v any) any {
	if unit, ok := v.(spec.Unit); ok {
		return Name{naming.RulePath, naming.UpperFirst(unit.String())}
	}
	return nil
}

// parseZone reads the name of a time zone, or takes an expression over parameters as it is.
func parseZone(v Value) (any, error) {
	if strings.Contains(v.Text, "#") {
		return v, nil
	}
	if _, err := spec.Zone(v.Text); v.Text == "" || err != nil {
		return "", fmt.Errorf("%q is no time zone: write a name of the IANA zone table such as Europe/Berlin, or an expression such as #user.Zone", v.Text)
	}
	return v.Text, nil
}

func zoneFits(s *Settings) error {
	if s.Period() == spec.NoUnit {
		return errors.New("a duration is the same in all time zones: remove tz, or write window=day, week, month or year")
	}
	return nil
}

// parseAnchor reads an anchor, or takes an expression over parameters as it is.
func parseAnchor(v Value) (any, error) {
	if strings.Contains(v.Text, "#") {
		return v, nil
	}
	n, err := spec.ParseAnchor(v.Text)
	if err != nil {
		return anchor{}, err
	}
	return anchor{v.Text, int64(n)}, nil
}

// anchorFits refuses an anchor that is not written in the way of its period.
func anchorFits(s *Settings) error {
	unit := s.Period()
	if unit == spec.NoUnit {
		return errors.New("a window of a duration begins with its first call: remove anchor, or write window=week, month or year")
	}
	if unit == spec.Day {
		return errors.New("a day begins at its first instant: remove anchor")
	}
	if a := get[anchor](s, "anchor"); a.text != "" && (spec.CheckAnchor(unit, int(a.n)) != nil || spec.AnchorText(unit, int(a.n)) != a.text) {
		return fmt.Errorf("%s is not where a %s begins: write %s", a.text, unit, map[spec.Unit]string{
			spec.Week: "a weekday such as sunday", spec.Month: "the day of the month, 1 to 31", spec.Year: "its month and day, as in 04-01"}[unit])
	}
	return nil
}

func anchorCode(v any) any {
	if a, ok := v.(anchor); ok {
		return a.n
	}
	return nil
}

// literal leaves a field out whose value is an expression.
func literal(v any) any {
	if text, ok := v.(string); ok {
		return text
	}
	return nil
}

// explainPeriod tells when periods begin.
func explainPeriod(s *Settings) string {
	unit := s.Period()
	if unit == spec.NoUnit {
		return ""
	}
	from, zone := "", "UTC"
	if v := s.Expr("anchor"); v != nil {
		from = " from " + v.Text + " on"
	} else if a := get[anchor](s, "anchor"); a.text != "" {
		from = " from " + a.text + " on"
	}
	if v := s.Expr("tz"); v != nil {
		zone = v.Text
	} else if s.Zone() != "" {
		zone = s.Zone()
	}
	return "A " + unit.String() + " is that of the calendar" + from + ", in the time zone " + zone + "."
}

// Keep returns of how many periods the counts are kept.
func (s *Settings) Keep() int64 { return get[int64](s, "keep") }

func (s *Settings) keepText() string { return strconv.FormatInt(s.Keep(), 10) }

func keepFits(s *Settings) error { return s.rule().FitsKeep() }

// keepSays tells what is kept of periods that are over.
func keepSays(s *Settings) string {
	switch n := s.Keep(); n {
	case 0:
		return ""
	case 1:
		return " The count of the last " + s.Per() + " stays beside it, for Usage."
	}
	return " The counts of the last " + s.keepText() + " " + s.Per() + "s stay beside it, for Usage."
}
