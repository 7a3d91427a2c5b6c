package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

type ruleLine struct {
	Name      string   `json:"name"`
	Declared  string   `json:"declared"` // file and line
	Algorithm string   `json:"algorithm"`
	Key       []string `json:"key"`
	Enabled   bool     `json:"enabled"`
	Max       *int64   `json:"max"` // null: each call brings its own
	MaxText   string   `json:"max_text,omitempty"`
	Window    string   `json:"window"`
	Burst     int64    `json:"burst,omitempty"` // which a bucket admits at once, if it is declared
	Mode      string   `json:"mode"`
	Prefix    string   `json:"prefix"`
	Override  string   `json:"override,omitempty"` // of the rule
	Differs   string   `json:"differs,omitempty"`  // what processes have declared, if not all the same
	Keys      int      `json:"overridden_keys"`    // patterns
}

func (s *session) listRules(ctx context.Context, _ []string) error {
	lines := make([]ruleLine, len(s.Rules))
	s.Compare(ctx)
	s.sayDiffering(s.Names()...)
	for i, d := range s.Rules {
		lines[i] = s.ruleLine(d)
	}
	return printEach(&s.printer, "RULE LIMIT MODE ALGORITHM OVERRIDE KEYS DECLARED", lines, ruleLine.row)
}

func (s *session) ruleLine(d operate.Rule) ruleLine {
	of := s.Modes.Rules[d.Name]
	differs, _ := s.Differing(d.Name)
	l := ruleLine{
		Name: d.Name, Declared: d.Place, Algorithm: d.Algorithm.String(), Key: append([]string{}, d.Parts...),
		MaxText: d.ByCall, Window: d.Per(), Burst: d.AtOnce(), Mode: runtime.ModeEnforce.String(), Prefix: d.Prefix, Differs: differs.Limits(), Keys: len(of.Keys),
	}
	on := func(is *bool) bool { return is == nil || *is }
	l.Enabled = on(s.Modes.Enabled) && on(of.Enabled)
	if d.Shadow {
		l.Mode = runtime.ModeShadow.String()
	}
	if d.ByCall == "" {
		l.Max = &d.Max
	}
	if of.Max != nil {
		l.Max, l.MaxText = of.Max, ""
	}
	if of.Burst != nil {
		l.Burst = *of.Burst
	}
	if of.Window != nil {
		l.Window = operate.ShortDuration(*of.Window)
	}
	if of.Mode != nil {
		l.Mode = of.Mode.String()
	}
	if own := operate.OwnOf(of); own != (rule.KeyOverride{}) {
		l.Override = override.Change{Values: override.Values{KeyOverride: own}}.String()
	}
	return l
}

func (l ruleLine) row() []string {
	limit := l.MaxText
	if l.Max != nil {
		limit = fmt.Sprint(*l.Max)
	}
	limit += " per " + l.Window
	if l.Burst > 0 && (l.Max == nil || l.Burst != *l.Max) {
		limit += fmt.Sprintf(", %d at once", l.Burst)
	}
	if !l.Enabled {
		limit = "off"
	} else if l.Differs != "" {
		limit = l.Differs
	}
	return rowOf(l.Name, limit, l.Mode, l.Algorithm, cmp.Or(l.Override, "-"), l.Keys, cmp.Or(l.Declared, "-"))
}
