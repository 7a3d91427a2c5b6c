package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime"
)

// A declared rule is one of a listing.
type declared struct {
	*runtime.Rule          // as if it refused calls
	shadow        bool     // it refuses none
	place         string   // file and line
	parts         []string // of the key, as they are written
	anyKey        bool     // the parts of the key are not known
	byCall        string   // the expression that is the max of a call, or empty
}

// per returns the time that the max refers to.
func (d declared) per() string {
	if d.Period != runtime.NoPeriod {
		return d.Period.String()
	}
	return shortDuration(d.Window)
}

// A listed rule is a line of rategen list -json, or of a page's api/listing.
type listed struct {
	File, Package, Interface                              string
	Line                                                  int
	Name, Prefix                                          string
	Key, Adaptive                                         []string
	Window, Resolution, Wait, Block, Lease, Reserve, Debt string
	Max, Algorithm, Storage, Buckets, Mode                string
	Burst                                                 int64
	Keep                                                  uint8
	Message                                               string
	TZ, Anchor                                            string
	AnyKey                                                bool `json:"any_key"`
	KeyParts                                              int  `json:"key_parts"` // of any key, if they are known
	Hold                                                  any  // the expression of the directive, or true
}

func parseListing(in io.Reader) (rules []declared, err error) {
	lines := json.NewDecoder(in)
	for n := 1; ; n++ {
		var l listed
		switch err := lines.Decode(&l); {
		case err == io.EOF:
			return rules, nil
		case err != nil:
			return nil, fmt.Errorf("rule %d: not what rategen list -json prints: %w", n, err)
		}
		rule, err := l.rule()
		if err != nil {
			return nil, fmt.Errorf("rule %d, %q: %w", n, l.Name, err)
		}
		rules = append(rules, rule)
	}
}

// rule returns the rule that a line describes.
func (l *listed) rule() (declared, error) {
	if l.Name == "" || l.Prefix == "" && !l.AnyKey || l.Window == "" {
		return declared{}, errors.New("it has no name, prefix or window")
	}
	r := &runtime.Rule{Name: l.Name, Prefix: l.Prefix, Burst: l.Burst, Keep: l.Keep, Hold: l.Hold != nil, Message: l.Message, Source: fmt.Sprintf("%s: %s", l.File, l.Interface)}
	d := declared{Rule: r, place: fmt.Sprintf("%s:%d", l.File, l.Line), parts: l.Key, anyKey: l.AnyKey}
	for n := range l.KeyParts {
		d.parts, d.anyKey = append(d.parts, fmt.Sprintf("part %d", n+1)), false
	}
	if l.AnyKey {
		d.place, r.Source = l.File, l.File // it names the method
	}
	if unit := spec.UnitOf(l.Window); unit != spec.NoUnit {
		// An expression is left out: it holds for its own calls, and the end of a period that a
		// key has begun is stored with the key.
		r.Period, l.Window = runtime.Period(unit), ""
		if _, err := spec.Zone(l.TZ); err == nil {
			r.Zone = l.TZ
		}
		if n, err := spec.ParseAnchor(l.Anchor); err == nil && spec.CheckAnchor(unit, n) == nil {
			r.Anchor = n
		}
	}
	for text, to := range map[*string]*time.Duration{&l.Window: &r.Window, &l.Resolution: &r.Resolution, &l.Wait: &r.Wait, &l.Block: &r.Block, &l.Lease: &r.Lease, &l.Reserve: &r.Reserve} {
		if *text == "" {
			continue
		}
		var err error
		if *to, err = time.ParseDuration(*text); err != nil {
			return declared{}, err
		}
	}
	var mode runtime.Mode
	var err error
	if r.Buckets, err = record.BucketsOf(l.Buckets); err != nil {
		return declared{}, err
	}
	if err := cmp.Or(record.Named(l.Algorithm, &r.Algorithm), record.Named(l.Storage, &r.Storage), record.Named(l.Debt, &r.Debt), record.Named(l.Mode, &mode)); err != nil {
		return declared{}, err
	}
	d.shadow = !mode.Denies()
	if r.Max, err = strconv.ParseInt(l.Max, 10, 64); err != nil {
		d.byCall = l.Max
	}
	return d, nil
}
