package override

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// What is in force follows from the fields, their ends and what holds then.
func TestFieldsInForce(t *testing.T) {
	t.Parallel()
	type is = rule.KeyOverride
	start := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	max := func(n int64) is { return is{Max: &n} }
	blocked := is{Enabled: new(true), Max: new(int64(0)), Mode: new(runtime.ModeEnforce)}
	const at1, at2, at3 = `"2026-11-22T14:00:01Z"`, `"2026-11-22T14:00:02Z"`, `"2026-11-22T14:00:03Z"`
	for text, want := range map[string][4]is{ // at the start, and after 1, 2 and 3 s
		`{"max": 7, "block": true}`:                                                             {blocked, blocked, blocked, blocked},
		`{"max": 7, "block": false}`:                                                            {max(7), max(7), max(7), max(7)},
		`{"max": 7, "block": true, "block_until": ` + at2 + `}`:                                 {blocked, blocked, max(7), max(7)},
		`{"max": 7, "block": true, "until": ` + at2 + `}`:                                       {blocked, blocked, {}, {}},
		`{"enabled": false, "mode": "shadow", "block": true, "block_until": ` + at1 + `}`:       {blocked, {Enabled: new(false), Mode: new(runtime.ModeShadow)}, {Enabled: new(false), Mode: new(runtime.ModeShadow)}, {Enabled: new(false), Mode: new(runtime.ModeShadow)}},
		`{"allow": true, "max": 7, "allow_until": ` + at1 + `}`:                                 {{Enabled: new(false), Max: new(int64(7))}, max(7), max(7), max(7)},
		`{"allow": true, "block": true, "allow_until": ` + at3 + `, "block_until":` + at2 + `}`: {blocked, blocked, {Enabled: new(false)}, {}},
		`{"max": 7, "block": true, "block_until": ` + at1 + `, "block_then": true}`:             {blocked, blocked, blocked, blocked},
		`{"max": 7, "block": true, "block_until": ` + at1 + `, "block_then": false}`:            {blocked, max(7), max(7), max(7)},
		`{"allow": true, "allow_until": ` + at1 + `, "allow_then": true}`:                       {{Enabled: new(false)}, {Enabled: new(false)}, {Enabled: new(false)}, {Enabled: new(false)}},
		`{"max": 9, "max_then": 7, "until": ` + at2 + `}`:                                       {max(9), max(9), max(7), max(7)},
		`{"max": 9, "max_then": 7, "max_until": ` + at1 + `, "mode": "shadow", "until": ` + at3 + `}`: {
			{Max: new(int64(9)), Mode: new(runtime.ModeShadow)}, {Max: new(int64(7)), Mode: new(runtime.ModeShadow)}, {Max: new(int64(7)), Mode: new(runtime.ModeShadow)}, max(7)},
		`{"window": "5s", "window_then": "7s", "window_until": ` + at1 + `}`: {
			{Window: new(5 * time.Second)}, {Window: new(7 * time.Second)}, {Window: new(7 * time.Second)}, {Window: new(7 * time.Second)}},
	} {
		fromHash, err := parseHash(map[string]string{`["r","k"]`: text, `["s", "k"]`: text})
		limittest.OK(t, err)
		fromFile, err := parseFile("a.yaml", []byte(`{"rules": {"r": {"keys": {"k": `+text+`}}, "s": {"keys": {"k": `+text+`}}}}`))
		limittest.OK(t, err)
		for i, want := range want {
			now := start.Add(time.Duration(i) * time.Second)
			for name, got := range map[string]runtime.Overrides{"hash": fromHash.at(now), "file": fromFile.at(now)} {
				for _, r := range []string{"r", "s"} {
					if diff := cmp.Diff(want, got.Rules[r].Keys["k"]); diff != "" {
						t.Errorf("%s, %s after %d s (-want +got):\n%s", text, name, i, diff)
					}
				}
				// A pattern that says nothing any more covers no other.
				if _, is := got.Rules["r"].Keys["k"]; !is && want != (rule.KeyOverride{}) || is && want == (rule.KeyOverride{}) {
					t.Errorf("%s, %s after %d s: there is %t", text, name, i, is)
				}
			}
		}
	}
}

// What makes no sense is an error that says what to write.
func TestWrongFields(t *testing.T) {
	t.Parallel()
	const ofRule, ofKey = "r", `["r","k"]`
	for said, want := range map[[2]string]string{
		{ofRule, `{"block": true}`}:                                  "block and allow are for keys",
		{ofRule, `{"max_until": "2026-11-22T14:00:00Z"}`}:            "max_until without max: leave it out",
		{ofRule, `{"max": 1, "max_then": 2}`}:                        "max_then needs max and max_until",
		{ofRule, `{"max_then": 2, "until": "2026-11-22T14:00:00Z"}`}: "max_then needs max and max_until",
		{ofRule, `{"max": 1, "max_until": "soon"}`}:                  "is no time",
		{ofRule, `{"keys": {"k": {"block": true}}}`}:                 `fields of their own, ["rule", "key"]`,
		{ofKey, `{"block": 1}`}:                                      "block is a number: write a boolean",
		{ofKey, `{"block": true, "block_then": true}`}:               "block_then needs block and block_until",
		{ofRule, `{"block_then": true}`}:                             "block and allow are for keys",
		{ofKey, `{"until_until": "2026-11-22T14:00:00Z"}`}:           `unknown field "until_until"`,
		{ofRule, `{"keys_until": "2026-11-22T14:00:00Z"}`}:           `unknown field "keys_until"`,
	} {
		_, err := parseHash(map[string]string{said[0]: said[1]})
		if cause := errors.Unwrap(err); cause != nil { // which may quote what could be a key
			err = cause
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", said, err, want)
		}
	}
	_, err := parseFile("a.json", []byte(`{"rules": {"r": {"until": "2026-11-22T14:00:00Z", "keys": {"k": {"max": 1, "max_then": 2, "until": "2026-11-22T13:00:00Z"}}}}}`))
	if err == nil || !strings.Contains(err.Error(), "give the key ends of its own") {
		t.Error(err)
	}
}
