package record

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A ruleText is a rule as a record has it: what decides calls, and nothing else.
type ruleText struct {
	Name       string        `json:"name"`
	Prefix     string        `json:"prefix,omitempty"`
	Algorithm  string        `json:"algorithm"`
	Storage    string        `json:"storage,omitempty"`
	Max        int64         `json:"max"`
	Burst      int64         `json:"burst,omitempty"`
	Window     time.Duration `json:"window_ns,omitempty"`
	Resolution time.Duration `json:"resolution_ns,omitempty"`
	Buckets    string        `json:"buckets,omitempty"`
	Wait       time.Duration `json:"wait_ns,omitempty"`
	Block      time.Duration `json:"block_ns,omitempty"`
	Lease      time.Duration `json:"lease_ns,omitempty"`
	Reserve    time.Duration `json:"reserve_ns,omitempty"`
	Hold       bool          `json:"hold,omitempty"`
	Debt       uint8         `json:"debt,omitempty"`
	Mode       string        `json:"mode"`
	Period     string        `json:"period,omitempty"`
	Zone       string        `json:"zone,omitempty"`
	Anchor     int           `json:"anchor,omitempty"`
	Keep       uint8         `json:"keep,omitempty"`
	Declared   *ruleText     `json:"declared,omitempty"` // if overrides have changed it
}

func textOf(r *runtime.Rule) *ruleText {
	t := &ruleText{
		Name: r.Name, Prefix: r.Prefix, Algorithm: r.Algorithm.String(), Max: r.Max, Burst: r.Burst, Window: r.Window,
		Resolution: r.Resolution, Wait: r.Wait, Block: r.Block, Lease: r.Lease, Reserve: r.Reserve, Hold: r.Hold,
		Debt: uint8(r.Debt), Mode: r.Mode.String(), Zone: r.Zone, Anchor: r.Anchor, Keep: r.Keep,
	}
	if r.Storage != runtime.StorageZSET {
		t.Storage = r.Storage.String()
	}
	if r.Buckets != (runtime.Buckets{}) {
		t.Buckets = r.Buckets.String()
	}
	if r.Period != runtime.NoPeriod {
		t.Period = r.Period.String()
	}
	return t
}

// RuleText returns a rule as a record has it. The zone and the anchor are those of a call that
// brings its own; otherwise the zone is empty.
func RuleText(r, declared *runtime.Rule, zone string, anchor int) ([]byte, error) {
	t := textOf(r)
	if declared != nil && declared != r {
		t.Declared = textOf(declared)
	}
	if zone != "" {
		t.Zone, t.Anchor = zone, anchor
	}
	return json.Marshal(t)
}

// parseRule returns the rule of a text.
func parseRule(text []byte) (s RuleState, err error) {
	var t ruleText
	if err := json.Unmarshal(text, &t); err != nil {
		return s, err
	}
	if s.Rule, err = t.rule(); err != nil {
		return s, err
	}
	if s.Declared = s.Rule; t.Declared != nil {
		s.Declared, err = t.Declared.rule()
	}
	return s, err
}

func (t *ruleText) rule() (*runtime.Rule, error) {
	r := &runtime.Rule{
		Name: t.Name, Prefix: t.Prefix, Max: t.Max, Burst: t.Burst, Window: t.Window, Resolution: t.Resolution,
		Wait: t.Wait, Block: t.Block, Lease: t.Lease, Reserve: t.Reserve, Hold: t.Hold, Debt: runtime.Debt(t.Debt),
		Zone: t.Zone, Anchor: t.Anchor, Keep: t.Keep,
	}
	for _, err := range []error{
		Named(t.Algorithm, &r.Algorithm), Named(t.Storage, &r.Storage), Named(t.Mode, &r.Mode), Named(t.Period, &r.Period),
	} {
		if err != nil {
			return nil, err
		}
	}
	var err error
	if r.Buckets, err = BucketsOf(t.Buckets); err != nil {
		return nil, err
	}
	return r, r.Check()
}

// Named sets the value that has a name; the zero one for an empty name.
func Named[T interface {
	~uint8
	String() string
}](name string, to *T) error {
	for v := range T(16) {
		if v.String() == name {
			*to = v
			return nil
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("this version does not know %q", name)
}

// BucketsOf returns the buckets that a text says.
func BucketsOf(text string) (runtime.Buckets, error) {
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
