package main

import (
	"cmp"
	"context"
	"strconv"

	"github.com/rategen/rategen/runtime"
)

// A ruleLine is a rule and what holds for it.
type ruleLine struct {
	Name      string   `json:"name"`
	Declared  string   `json:"declared"` // file and line
	Algorithm string   `json:"algorithm"`
	Key       []string `json:"key"`
	Enabled   bool     `json:"enabled"`
	Max       *int64   `json:"max"` // null: each call brings its own
	MaxText   string   `json:"max_text,omitempty"`
	Window    string   `json:"window"`
	Mode      string   `json:"mode"`
	Prefix    string   `json:"prefix"`
	Override  string   `json:"override,omitempty"` // of the rule
	Keys      int      `json:"overridden_keys"`    // patterns
}

// rules prints the rules.
func rules(_ context.Context, o *operator, _ []string) error {
	lines := make([]ruleLine, len(o.known))
	for i, d := range o.known {
		lines[i] = o.ruleLine(d)
	}
	return printEach(o, "RULE LIMIT MODE ALGORITHM OVERRIDE KEYS DECLARED", lines, ruleLine.row)
}

func (o *operator) ruleLine(d declared) ruleLine {
	l := ruleLine{
		Name: d.Name, Declared: d.place, Algorithm: d.Algorithm.String(), Key: append([]string{}, d.parts...), Enabled: o.modes.Enabled == nil || *o.modes.Enabled,
		MaxText: d.byCall, Window: d.per(), Mode: runtime.ModeEnforce.String(), Prefix: d.Prefix,
	}
	if d.shadow {
		l.Mode = runtime.ModeShadow.String()
	}
	if d.byCall == "" {
		l.Max = &d.Max
	}
	of, is := o.modes.Rules[d.Name]
	if !is {
		return l
	}
	l.Keys = len(of.Keys)
	if of.Enabled != nil && !*of.Enabled {
		l.Enabled = false
	}
	if of.Max != nil {
		l.Max, l.MaxText = of.Max, ""
	}
	if of.Window != nil {
		l.Window = shortDuration(*of.Window)
	}
	if of.Mode != nil {
		l.Mode = of.Mode.String()
	}
	l.Override = ownText(of)
	return l
}

func (l ruleLine) row() []string {
	limit := l.MaxText
	if l.Max != nil {
		limit = strconv.FormatInt(*l.Max, 10)
	}
	limit += " per " + l.Window
	if !l.Enabled {
		limit = "off"
	}
	return []string{l.Name, limit, l.Mode, l.Algorithm, cmp.Or(l.Override, "-"), strconv.Itoa(l.Keys), l.Declared}
}
