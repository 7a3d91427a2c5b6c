package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

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
	Hold                                                  any  // the expression of the directive, or true
}

// readListing returns the rules of a file, or of standard input.
func (p *program) readListing(path string) ([]declared, error) {
	const remedy = "make one with: rategen list -json ./... > rules.jsonl"
	if path == "" {
		return nil, usagef("which rules are there? Name the file with -rules or RATECTL_RULES; %s", remedy)
	}
	in := p.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, usagef("-rules: %v; %s", err, remedy)
		}
		defer file.Close()
		in = file
	}
	rules, err := parseListing(in)
	if err == nil && len(rules) == 0 {
		err = errors.New("there is no rule in it")
	}
	if err != nil {
		return nil, usagef("-rules %s: %v; %s", path, err, remedy)
	}
	return rules, nil
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
	var err error
	if r.Algorithm, err = named[runtime.Algorithm](l.Algorithm); err != nil {
		return declared{}, err
	}
	if r.Storage, err = named[runtime.Storage](l.Storage); err != nil {
		return declared{}, err
	}
	if r.Debt, err = named[runtime.Debt](l.Debt); err != nil {
		return declared{}, err
	}
	mode, err := named[runtime.Mode](l.Mode)
	if err != nil {
		return declared{}, err
	}
	d.shadow = !mode.Denies()
	if r.Buckets, err = bucketsOf(l.Buckets); err != nil {
		return declared{}, err
	}
	if r.Max, err = strconv.ParseInt(l.Max, 10, 64); err != nil {
		d.byCall = l.Max
	}
	return d, nil
}

// named returns the value that has a name; the zero one for an empty name.
func named[T interface {
	~uint8
	String() string
}](name string) (T, error) {
	for v := range T(16) {
		if v.String() == name {
			return v, nil
		}
	}
	if name == "" {
		return 0, nil
	}
	return 0, fmt.Errorf("this version of ratectl does not know %q", name)
}

func bucketsOf(text string) (runtime.Buckets, error) {
	coarse, fine, layered := strings.Cut(text, "x")
	n, err := strconv.Atoi(coarse)
	switch {
	case text == "":
		return runtime.Buckets{}, nil
	case text == "auto":
		return runtime.AdaptiveBuckets(), nil
	case err == nil && !layered:
		return runtime.EqualBuckets(n), nil
	}
	m, err2 := strconv.Atoi(fine)
	if err != nil || err2 != nil {
		return runtime.Buckets{}, fmt.Errorf("unknown buckets %q", text)
	}
	return runtime.LayeredBuckets(n, m), nil
}
