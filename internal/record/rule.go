package record

import (
	"encoding/json"
	"fmt"

	"github.com/rategen/rategen/internal/rulelist"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
)

// A ruleText is a rule as a record has it: what decides calls, and nothing else.
type ruleText struct {
	rulelist.Rule
	Declared *rulelist.Rule `json:"declared,omitempty"` // if overrides have changed it
}

// line returns the line that lists a rule, without what decides no call.
func line(r *runtime.Rule) rulelist.Rule {
	l := rulelist.New(r)
	l.File, l.Message = "", ""
	return l
}

// RuleText returns a rule as a record has it. The zone and the anchor are those of a call that
// brings its own; otherwise the zone is empty.
func RuleText(r, declared *runtime.Rule, zone string, anchor int) ([]byte, error) {
	t := ruleText{Rule: line(r)}
	if declared != nil && declared != r {
		t.Declared = new(line(declared))
	}
	if zone != "" {
		t.Zone, t.Anchor = zone, spec.AnchorText(spec.Unit(r.Period), anchor)
	}
	return json.Marshal(t)
}

// parseRule returns the rule of a text.
func parseRule(text []byte) (s RuleState, err error) {
	var t ruleText
	if err := json.Unmarshal(text, &t); err != nil {
		return s, err
	}
	if s.Rule, err = parseLine(&t.Rule); err != nil {
		return s, err
	}
	s.Declared = s.Rule
	if t.Declared != nil {
		s.Declared, err = parseLine(t.Declared)
	}
	return s, err
}

// parseLine returns the rule that a line lists. It is an error if the rule is not valid, or not all
// of the line is understood.
func parseLine(l *rulelist.Rule) (*runtime.Rule, error) {
	r, err := l.Rule()
	if err != nil {
		return nil, err
	}
	if again := rulelist.New(r); l.Zone != again.Zone || l.Anchor != again.Anchor || l.Max != again.Max {
		return nil, fmt.Errorf("its time zone %q, anchor %q or max %q is not known here", l.Zone, l.Anchor, l.Max)
	}
	return r, r.Check()
}
