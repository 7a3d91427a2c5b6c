package runtime

import (
	"strings"
	"time"

	"pgregory.net/rapid"
)

type fixedScaler float64

func (f fixedScaler) Factor(Load) float64 { return float64(f) }

// pathRules returns rules that are all decided in some other way.
func pathRules() []*Rule {
	return []*Rule{
		{Name: "plain", Prefix: "plain:", Window: time.Second, Max: 3},
		{Name: "adaptive", Prefix: "adaptive:", Window: time.Second, Max: 4, Adaptive: fixedScaler(0.5)},
		{Name: "shadow", Prefix: "shadow:", Window: time.Second, Max: 2, Mode: Shadow},
		{Name: "waits", Prefix: "waits:", Window: time.Second, Max: 2, Wait: 500 * time.Millisecond},
		{Name: "queue", Prefix: "queue:", Window: time.Second, Max: 2, Wait: 500 * time.Millisecond, Algorithm: LeakyBucket},
		{Name: "bucket", Prefix: "bucket:", Window: time.Second, Max: 3, Burst: 5, Algorithm: TokenBucket, Fail: FailClosed, Message: "no"},
		{Name: "counter", Prefix: "counter:", Window: time.Second, Max: 3, Algorithm: SlidingCounter, Fail: FailLocal},
		{Name: "window", Prefix: "window:", Window: time.Second, Max: 3, Algorithm: FixedWindow},
		{Name: "long", Prefix: strings.Repeat("p", 150) + ":", Window: time.Second, Max: 3},
		{Name: "wrong", Prefix: "wrong:", Window: 0, Max: 3},
		{Name: "none", Prefix: "none:", Window: time.Second},
		nil,
	}
}

func drawLimit(t *rapid.T, rules []*Rule) Limit {
	key := NewKey()
	switch rapid.SampledFrom([]string{"a", "a", "b", "escaped", "long", "invalid", "empty"}).Draw(t, "key") {
	case "a":
		key.AddString("a")
	case "b":
		key.AddString("b").AddInt(7)
	case "escaped":
		key.AddString("a:{b}%")
	case "long":
		key.AddString(strings.Repeat("long", 50))
	case "invalid":
		key.AddInvalid("it is nil")
	}
	limit := rapid.SampledFrom(rules).Draw(t, "rule").Limit(key)
	limit = limit.WithCost(rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 3, 0, -1, 9}).Draw(t, "cost"))
	if n := rapid.SampledFrom([]int64{-2, -2, -2, -2, 5, 0, -1}).Draw(t, "max"); n > -2 {
		limit = limit.WithMax(n)
	}
	return limit
}

func drawOverrides(t *rapid.T, rules []*Rule) *Overrides {
	o := &Overrides{Rules: map[string]Override{}}
	if rapid.IntRange(0, 9).Draw(t, "all off") == 0 {
		o.Enabled = new(false)
	}
	for _, r := range rules {
		if r == nil || r.Name == "wrong" || rapid.Bool().Draw(t, "as declared") {
			continue
		}
		var of Override
		switch rapid.SampledFrom([]string{"max", "window", "mode", "off"}).Draw(t, "override") {
		case "max":
			of.Max = new(rapid.Int64Range(0, 6).Draw(t, "max"))
		case "window":
			of.Window = new(rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 3 * time.Second}).Draw(t, "window"))
		case "mode":
			of.Mode = new(rapid.SampledFrom([]Mode{Enforce, Shadow}).Draw(t, "mode"))
		case "off":
			of.Enabled = new(false)
		}
		o.Rules[r.Name] = of
	}
	if rapid.IntRange(0, 5).Draw(t, "refused") == 0 {
		o.Rules["plain"] = Override{Max: new(int64(2_000_000))} // more than a log may keep
	}
	return o
}
