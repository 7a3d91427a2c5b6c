// Package rulelist is rules as a listing tells them: what rategen list -json prints of source, or
// the api/listing of a live page.
package rulelist

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A Rule is a line of a listing. It has what tools need to find the rule's keys, as far as the
// writer knows: a running program knows not the expressions of a key.
type Rule struct {
	File       string   `json:"file"`
	Line       int      `json:"line,omitempty"`
	Interface  string   `json:"interface,omitempty"`
	Name       string   `json:"name"`
	Prefix     string   `json:"prefix,omitempty"`
	Key        []string `json:"key,omitempty"`       // its parts, as they are written
	AnyKey     bool     `json:"any_key"`             // the parts of its keys are not known by name
	KeyParts   int      `json:"key_parts,omitempty"` // how many they are; 0: none, or not known
	Window     string   `json:"window"`
	Max        string   `json:"max"`
	Algorithm  string   `json:"algorithm"`
	Storage    string   `json:"storage,omitempty"`
	Resolution string   `json:"resolution,omitempty"`
	Zone       string   `json:"tz,omitempty"`
	Anchor     string   `json:"anchor,omitempty"`
	Keep       uint8    `json:"keep,omitempty"`
	Ledger     string   `json:"ledger,omitempty"`
	Buckets    string   `json:"buckets,omitempty"`
	Burst      int64    `json:"burst,omitempty"`
	Share      []string `json:"share,omitempty"` // its parts, as they are written
	Headroom   int64    `json:"headroom,omitempty"`
	Wait       string   `json:"wait,omitempty"`
	Block      string   `json:"block,omitempty"`
	Lease      string   `json:"lease,omitempty"`
	Reserve    string   `json:"reserve,omitempty"`
	Debt       string   `json:"debt,omitempty"`
	Hold       any      `json:"hold,omitempty"` // the expression of the directive, or true
	Mode       string   `json:"mode"`
	Message    string   `json:"message,omitempty"`
}

// New returns the line that lists a rule of a running program.
func New(r *runtime.Rule) Rule {
	l := Rule{
		File: r.Source, Name: r.Name, Prefix: r.Prefix, AnyKey: true,
		Window: r.Window.String(), Max: strconv.FormatInt(r.Max, 10), Algorithm: r.Algorithm.String(),
		Burst: r.Burst, Headroom: r.Headroom, Keep: r.Keep, Mode: r.Mode.String(), Message: r.Message,
	}
	for text, d := range l.durations(r) {
		if *d != 0 {
			*text = d.String()
		}
	}
	if r.Period != rule.NoPeriod {
		l.Window, l.Zone, l.Anchor = r.Period.String(), r.Zone, spec.AnchorText(spec.Unit(r.Period), r.Anchor)
	}
	if r.Debt != rule.DebtDefault {
		l.Debt = r.Debt.String()
	}
	if r.Ledger != rule.LedgerOff {
		l.Ledger = r.Ledger.String()
	}
	if r.Hold {
		l.Hold = true
	}
	row := algorithm.RowOf(r.Algorithm)
	if row.Takes("storage") {
		l.Storage = r.Storage.String()
	}
	if row.Takes("buckets") {
		l.Buckets = r.Buckets.String()
	}
	return l
}

// durations are the fields of both that are durations, but for the window.
func (l *Rule) durations(r *runtime.Rule) map[*string]*time.Duration {
	return map[*string]*time.Duration{&l.Resolution: &r.Resolution, &l.Wait: &r.Wait, &l.Block: &r.Block, &l.Lease: &r.Lease, &l.Reserve: &r.Reserve}
}

// Rule returns the rule that a line describes. Its max is 0 if each call brings its own.
func (l *Rule) Rule() (*runtime.Rule, error) {
	if !l.AnyKey && (l.Name == "" || l.Prefix == "") || l.Window == "" {
		return nil, errors.New("it has no name, prefix or window")
	}
	r := &runtime.Rule{Name: l.Name, Prefix: l.Prefix, Burst: l.Burst, Headroom: l.Headroom, Keep: l.Keep, Hold: l.Hold != nil, Message: l.Message, Source: l.File}
	if !l.AnyKey { // else the file names the method
		r.Source += ": " + l.Interface
	}
	if len(l.Share) > 0 && r.Headroom == 0 {
		r.Headroom = -1
	}
	r.Max, _ = strconv.ParseInt(l.Max, 10, 64)
	durations := l.durations(r)
	if unit := spec.UnitOf(l.Window); unit == spec.NoUnit {
		durations[&l.Window] = &r.Window
	} else {
		// An expression is left out: it holds for its own calls, and the end of a period that a
		// key has begun is stored with the key.
		r.Period = rule.Period(unit)
		if _, err := spec.Zone(l.Zone); err == nil {
			r.Zone = l.Zone
		}
		if n, err := spec.ParseAnchor(l.Anchor); err == nil && spec.CheckAnchor(unit, n) == nil {
			r.Anchor = n
		}
	}
	for text, to := range durations {
		var err error
		if *to, err = time.ParseDuration(cmp.Or(*text, "0")); err != nil {
			return nil, err
		}
	}
	var err error
	r.Buckets, err = bucketsOf(l.Buckets)
	return r, cmp.Or(err, Named(l.Algorithm, &r.Algorithm), Named(l.Storage, &r.Storage), Named(l.Debt, &r.Debt), Named(l.Ledger, &r.Ledger), Named(l.Mode, &r.Mode))
}

// ByCall reports whether the max is an expression, which each call evaluates.
func (l *Rule) ByCall() bool {
	_, err := strconv.ParseInt(l.Max, 10, 64)
	return err != nil
}
