package plan

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// TestNumbers wants what each way of counting makes of a rule's numbers, at a max of 100 in
// 10 seconds unless it says otherwise.
func TestNumbers(t *testing.T) {
	const s = 1_000_000
	for name, test := range map[string]struct {
		rule                rule.Rule
		max                 int64 // 0: 100
		algorithm           algorithm.Algorithm
		window, param, more int64
		capacity, most      int64
		tag                 string
		leases              bool
	}{
		"log":                        {rule.Rule{}, 0, algorithm.LogZSet, 10 * s, 0, 0, 100, spec.MaxLogCost, "", false},
		"log in slices, leased":      {rule.Rule{Resolution: time.Second, Lease: 2 * time.Second}, 0, algorithm.LogZSet, 12 * s, s, 0, 100, spec.MaxLogCost, "", true},
		"packed log with a block":    {rule.Rule{Storage: rule.StoragePacked, Block: time.Hour}, 0, algorithm.LogPacked, 10 * s, 0, 0, 100, spec.MaxLogCost, "%packed%block", false},
		"counter":                    {rule.Rule{Algorithm: rule.SlidingCounter, Buckets: rule.EqualBuckets(60)}, 0, algorithm.Counter, 10 * s, 166667, 0, 100, spec.MaxCount, "%counter", false},
		"adaptive counter":           {rule.Rule{Algorithm: rule.SlidingCounter, Buckets: rule.AdaptiveBuckets()}, 0, algorithm.Counter, 10 * s, 0, 0, 100, spec.MaxCount, "%counter", false},
		"layers, leased":             {rule.Rule{Algorithm: rule.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10), Lease: 2 * time.Second}, 0, algorithm.LayeredCounter, 12 * s, 200000, 10, 100, spec.MaxCount, "%layered-6x10-12000000", true},
		"layers with a hold":         {rule.Rule{Algorithm: rule.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10), Hold: true}, 0, algorithm.LayeredCounter, 10 * s, 166667, 10, 100, spec.MaxCount, "%layered-6x10-10000000%block", false},
		"fixed window, leased":       {rule.Rule{Algorithm: rule.FixedWindow, Lease: time.Second}, 0, algorithm.FixedWindow, 10 * s, 0, 0, 100, spec.MaxAmount, "%window", true},
		"bucket":                     {rule.Rule{Algorithm: rule.TokenBucket}, 0, algorithm.TokenBucket, 10 * s, 100, -1, 100, spec.MaxCount, "%token", false},
		"bucket with a burst":        {rule.Rule{Algorithm: rule.TokenBucket, Burst: 7}, 0, algorithm.TokenBucket, 10 * s, 7, -1, 7, spec.MaxCount, "%token", false},
		"leased bucket":              {rule.Rule{Algorithm: rule.TokenBucket, Lease: time.Second}, 0, algorithm.TokenBucket, 10 * s, 90, -1, 90, spec.MaxCount, "%token", true},
		"leased, rounded":            {rule.Rule{Algorithm: rule.LeakyBucket, Lease: time.Second}, 101, algorithm.LeakyBucket, 10 * s, 90, -1, 90, spec.MaxCount, "%leaky", true},
		"burst too small to lease":   {rule.Rule{Algorithm: rule.TokenBucket, Burst: 10, Lease: time.Second}, 0, algorithm.TokenBucket, 10 * s, 10, -1, 10, spec.MaxCount, "%token", false},
		"queue":                      {rule.Rule{Algorithm: rule.LeakyBucket, Wait: 3 * time.Second}, 0, algorithm.Queue, 10 * s, 130, 0, 130, spec.MaxCount, "%queue", false},
		"queue with a burst":         {rule.Rule{Algorithm: rule.LeakyBucket, Wait: 3 * time.Second, Burst: 4}, 0, algorithm.Queue, 10 * s, 4, 0, 4, spec.MaxCount, "%queue", false},
		"endless queue":              {rule.Rule{Algorithm: rule.LeakyBucket, Wait: math.MaxInt64}, spec.MaxCount, algorithm.Queue, 10 * s, spec.MaxCount, 0, spec.MaxCount, spec.MaxCount, "%queue", false},
		"a token bucket never lines": {rule.Rule{Algorithm: rule.TokenBucket, Wait: 3 * time.Second}, 0, algorithm.TokenBucket, 10 * s, 100, -1, 100, spec.MaxCount, "%token", false},
		"permits":                    {rule.Rule{Algorithm: rule.Concurrency, Mode: rule.ModeShadow}, 0, algorithm.Permits, 10 * s, 0, 0, 100, spec.MaxLogCost, "%permits", false},
	} {
		r := test.rule
		r.Name, r.Window = name, 10*time.Second
		n := NumbersOf(&r)
		if test.max == 0 {
			test.max = 100
		}
		want := terms.Terms{Algorithm: test.algorithm, Shadow: !r.Mode.Refuses(), Window: test.window, Max: test.max,
			Param: test.param, More: test.more, Block: r.Block.Microseconds(), Holds: r.Hold}
		if got := n.Terms(test.max); got != want {
			t.Errorf("%s: terms %+v, want %+v", name, got, want)
		}
		if c, m, tag, l := n.Capacity(test.max), n.MostCost(), n.Tag(), n.Leases(test.max); c != test.capacity || m != test.most || tag != test.tag || l != test.leases {
			t.Errorf("%s: capacity %d, most %d, tag %q, leases %t", name, c, m, tag, l)
		}
		if err := rule.Engine.CheckCall(&r, test.max, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck wants an error that names what is wrong, and none on the bounds.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		rule      rule.Rule
		max, cost int64
		want      string
	}{
		{rule.Rule{}, 0, 0, ""},
		{rule.Rule{}, spec.MaxLog, spec.MaxCount, ""},
		{rule.Rule{}, spec.MaxLog + 1, 1, "above 1000000, the maximum of a sliding-log"},
		{rule.Rule{Algorithm: rule.FixedWindow}, spec.MaxAmount, spec.MaxAmount, ""},
		{rule.Rule{Algorithm: rule.FixedWindow}, spec.MaxAmount + 1, 1, "above 9007199254740991, the maximum of a fixed-window"},
		{rule.Rule{Algorithm: rule.SlidingCounter}, spec.MaxCount + 1, 1, "above 1000000000000, the maximum of a sliding-counter"},
		{rule.Rule{}, -1, 1, "max -1 is negative"},
		{rule.Rule{}, 1, -1, "cost -1 is negative"},
		{rule.Rule{Window: -10*time.Second + spec.MinWindow}, 1, 1, ""},
		{rule.Rule{Window: -10*time.Second + spec.MinWindow - 1}, 1, 1, "window 999.999µs"},
		{rule.Rule{Window: spec.MaxWindow - 10*time.Second}, 1, 1, ""},
		{rule.Rule{Window: spec.MaxWindow - 10*time.Second + 1}, 1, 1, "366 days"},
		{rule.Rule{Algorithm: rule.TokenBucket, Burst: spec.MaxCount}, spec.MaxCount, 1, ""},
		{rule.Rule{Algorithm: rule.TokenBucket, Burst: spec.MaxCount + 1}, spec.MaxCount, 1, "burst"},
		{rule.Rule{Algorithm: rule.TokenBucket, Burst: spec.MaxCount}, 1, 1, "142 years"},
		{rule.Rule{Wait: -1}, 1, 1, "wait -1ns is below 1µs"},
		{rule.Rule{Wait: 5}, 1, 1, "wait 5ns is below 1µs"},
		{rule.Rule{Burst: 5}, 1, 1, "burst: a sliding-log"},
		{rule.Rule{Algorithm: rule.SlidingCounter, Buckets: rule.EqualBuckets(0)}, 1, 1, "buckets"},
		{rule.Rule{Resolution: 11 * time.Second}, 1, 1, "resolution: 11s is longer"},
		{rule.Rule{Block: time.Second, Wait: time.Second}, 1, 1, "block:"},
		{rule.Rule{Lease: 10 * time.Second}, 1, 1, "lease:"},
		{rule.Rule{Algorithm: rule.Concurrency, Hold: true}, 1, 1, "hold"},
	} {
		r := test.rule
		r.Name, r.Window = "r", r.Window+10*time.Second
		if err := rule.Engine.CheckCall(&r, test.max, test.cost); (err == nil) != (test.want == "") || err != nil && !strings.Contains(strings.ToLower(err.Error()), test.want) {
			t.Errorf("%+v at %d for %d: got %v, want %q", r, test.max, test.cost, err, test.want)
		}
	}
	of := func(r rule.Rule) Numbers {
		r.Window = time.Second
		return NumbersOf(&r)
	}
	log, counter, permits := of(rule.Rule{}), of(rule.Rule{Algorithm: rule.SlidingCounter}), of(rule.Rule{Algorithm: rule.Concurrency})
	window, bucket, queue := of(rule.Rule{Algorithm: rule.FixedWindow}), of(rule.Rule{Algorithm: rule.LeakyBucket}), of(rule.Rule{Algorithm: rule.LeakyBucket, Wait: 1})
	for name, ok := range map[string]bool{
		"a log takes 250":            log.CheckCost(1000, 250) == nil,
		"a log takes no 251":         log.CheckCost(1000, 251) != nil,
		"what is refused is no work": log.CheckCost(250, 251) == nil,
		"a counter takes all":        counter.CheckCost(spec.MaxCount, spec.MaxCount) == nil,
		"nor do permits take 251":    permits.CheckCost(1000, 251) != nil,
		"a log owes 250":             log.CheckSettled(3, 253) == nil,
		"a log owes no 251":          log.CheckSettled(3, 254) != nil,
		"nobody owes all":            counter.CheckSettled(spec.MaxCount, spec.MaxCount+1) != nil,
		"a window owes all":          window.CheckSettled(1, spec.MaxAmount) == nil,
		"but no more":                window.CheckSettled(1, spec.MaxAmount+1) != nil,
		"1 is no rounding":           window.Scale(spec.MaxAmount, 1, 1) == spec.MaxAmount,
		"modes count alike":          log.CountsAs(of(rule.Rule{Name: "another", Max: 7, Mode: rule.ModeShadow, Wait: 1})),
		"storages do not":            !log.CountsAs(of(rule.Rule{Storage: rule.StoragePacked})),
		"a queue is no bucket":       !bucket.CountsAs(queue),
		"60 buckets are the default": counter.CountsAs(of(rule.Rule{Algorithm: rule.SlidingCounter, Buckets: rule.EqualBuckets(60)})),
		"61 are not":                 !counter.CountsAs(of(rule.Rule{Algorithm: rule.SlidingCounter, Buckets: rule.EqualBuckets(61)})),
		"scaled is not 0":            log.Scale(10, 1, 0.001) == 1,
		"nor below the cost":         log.Scale(10, 7, 0.1) == 7,
		"nor above the bound":        log.Scale(spec.MaxLog, 1, 2) == spec.MaxLog,
	} {
		if !ok {
			t.Error(name)
		}
	}
}

// TestShare wants a process's share of a plan: a part of max and burst, and at least 1.
func TestShare(t *testing.T) {
	for _, test := range []struct{ max, burst, replicas, wantMax, wantBurst int64 }{
		{100, 0, 1, 100, 100}, {100, 0, 3, 33, 33}, {100, 30, 4, 25, 7}, {2, 3, 10, 1, 1}, {0, 0, 5, 1, 1},
	} {
		r := &rule.Rule{Name: "r", Algorithm: rule.TokenBucket, Window: time.Minute, Burst: test.burst}
		p := &Plan{Key: Key{Rule: r, Max: test.max}, Numbers: NumbersOf(r), Fail: rule.FailLocal}
		p.Name, p.Start = "r", "r:"
		share := p.Complete(test.replicas).Share
		if share.Terms.Max != test.wantMax || share.Capacity != test.wantBurst || share.Share != share || string(share.Whole) != string(p.Whole) {
			t.Errorf("%+v: got %+v", test, share.Terms)
		}
	}
	p := (&Plan{Key: Key{Max: 9}, Numbers: NumbersOf(&rule.Rule{Window: time.Minute})}).Complete(3)
	if p.Share != p {
		t.Error("a rule that fails open has a share")
	}
}
