package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

const (
	maxKeys = 1000
	maxCost = 5
)

// An algorithm is one way to count, and how to check it.
type algorithm struct {
	set   func(*runtime.Rule)               // makes the rule one of this algorithm
	check func(*runtime.Rule) judge.Checker // checks one key
	// history is set in place of check if every call is one of its own that
	// shares batches and may be refused without one.
	history func(*runtime.Rule) judge.History
	// settled is set in place of both if calls are settled, and the sums are
	// checked in the end.
	settled bool
	// leased is set in place of these if processes admit calls by leases, while they
	// are stopped and killed.
	leased bool
	// streams is set in place of these if calls are streams, whose processes are killed.
	streams bool
	// mistake is what Redis is told otherwise than declared in a control, whose faults must be found.
	mistake func(*runtime.Rule)
}

// controls are the runs that are wrong on purpose, and the fault that must be found in each.
var controls = map[string]judge.Fault{forgetful: judge.Spurious, unlengthened: judge.Over, controlName: judge.Over}

// names returns the names of the algorithms that are no controls.
func names() []string {
	all := slices.Sorted(maps.Keys(algorithms))
	return slices.DeleteFunc(all, func(name string) bool { return controls[name] != 0 })
}

// controlName is the name of the run in which Redis lets events leave their window too soon.
const controlName = "control"

var algorithms = map[string]*algorithm{
	"zset":         {set: func(*runtime.Rule) {}, check: judge.CheckBy(judge.NewLogHistory)},
	"packed":       {set: packed, check: judge.CheckBy(judge.NewLogHistory)},
	"fixed-window": {set: fixed, check: judge.CheckBy(judge.NewFixedHistory)},
	"token-bucket": {set: func(r *runtime.Rule) {
		r.Algorithm = runtime.TokenBucket
		r.Burst = max(maxCost, r.Max/3)
	}, check: judge.NewBucketCheck},
	"leaky-bucket": {set: func(r *runtime.Rule) { r.Algorithm = runtime.LeakyBucket }, check: judge.NewBucketCheck},
	"queue": {set: func(r *runtime.Rule) {
		r.Algorithm = runtime.LeakyBucket
		r.Wait = r.Window / 3
	}, check: judge.NewBucketCheck},
	"counter-60":   {set: counter(rule.EqualBuckets(60)), check: judge.CheckBy(judge.NewCounterHistory(60))},
	"counter-6x10": {set: counter(rule.LayeredBuckets(6, 10)), check: judge.CheckBy(judge.NewCounterHistory(60))},
	"counter-auto": {set: counter(rule.AdaptiveBuckets()), check: judge.CheckBy(judge.NewCounterHistory(16))},
	controlName: {set: func(*runtime.Rule) {}, check: judge.CheckBy(judge.NewLogHistory), mistake: func(r *runtime.Rule) {
		r.Window = r.Window * 2 / 3
	}},
	"zset shared":   {set: func(*runtime.Rule) {}, history: judge.NewLogHistory},
	"packed shared": {set: packed, history: judge.NewLogHistory},
	"fixed shared":  {set: fixed, history: judge.NewFixedHistory},

	"zset settled":    {set: func(*runtime.Rule) {}, settled: true},
	"packed settled":  {set: packed, settled: true},
	"fixed settled":   {set: fixed, settled: true},
	"bucket settled":  {set: func(r *runtime.Rule) { r.Algorithm = runtime.TokenBucket }, settled: true},
	"counter settled": {set: counter(rule.AdaptiveBuckets()), settled: true},
	"layered settled": {set: counter(rule.LayeredBuckets(6, 10)), settled: true},
	forgetful:         {set: func(*runtime.Rule) {}, settled: true},

	"log leased":     {set: func(*runtime.Rule) {}, leased: true},
	"counter leased": {set: counter(rule.EqualBuckets(60)), leased: true},
	"bucket leased": {set: func(r *runtime.Rule) {
		r.Algorithm = runtime.TokenBucket
		r.Burst = r.Max
	}, leased: true},
	"streams":    {set: func(*runtime.Rule) {}, streams: true},
	unlengthened: {set: counter(rule.EqualBuckets(1000)), leased: true, mistake: func(r *runtime.Rule) { r.Lease = 0 }},
}

func packed(r *runtime.Rule) { r.Storage = runtime.StoragePacked }

func fixed(r *runtime.Rule) { r.Algorithm = runtime.FixedWindow }

func counter(b rule.Buckets) func(*runtime.Rule) {
	return func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, b }
}

// shapes are the limits that the keys have in turn: from ones that a single
// process exhausts to ones that all of them together hardly do, and 128 events,
// where Redis changes how it stores them.
var shapes = []shape{
	{50 * time.Millisecond, 5, 0},
	{50 * time.Millisecond, 1000, 0},
	{80 * time.Millisecond, 301, 0},
	{120 * time.Millisecond, 41, 0},
	{200 * time.Millisecond, 2500, 0},
	{333 * time.Millisecond, 700, 0},
	{500 * time.Millisecond, 4999, 0},
	{75 * time.Millisecond, 128, 0},
}

// leasedShapes are what the keys of leased runs have in turn: leases that are short for their
// window, and ones that are half as long.
var leasedShapes = []shape{
	{time.Second, 2400, 50 * time.Millisecond},
	{500 * time.Millisecond, 1200, 250 * time.Millisecond},
	{200 * time.Millisecond, 300, 20 * time.Millisecond},
	{300 * time.Millisecond, 700, 100 * time.Millisecond},
}

// shortShapes are what all keys of the control have: a lease so long for its window that
// much is used late.
var shortShapes = []shape{{240 * time.Millisecond, 500, 160 * time.Millisecond}}

// A shape is what the limit of a key admits in which window.
type shape struct {
	window time.Duration
	max    int64
	lease  time.Duration
}

// A limit is one key.
type limit struct {
	rule runtime.Rule
	key  []byte
}

// newLimits returns the keys of an algorithm.
func newLimits(name string, c config) []limit {
	limits, of := make([]limit, c.keys), shapes
	if name == unlengthened {
		of = shortShapes
	} else if algorithms[name].leased {
		of = leasedShapes
	}
	for i := range limits {
		shape := of[i%len(of)]
		l := &limits[i]
		l.key = fmt.Appendf(nil, "%s:%d", name, i)
		l.rule = runtime.Rule{Name: string(l.key), Window: shape.window, Max: shape.max, Lease: shape.lease}
		if algorithms[name].settled {
			l.rule.Window, l.rule.Max = settledWindow, settledMax(i)
		}
		if algorithms[name].streams {
			yearly(&l.rule, i, c)
		}
		algorithms[name].set(&l.rule)
	}
	return limits
}

// rulesOf returns the rule of each key.
func rulesOf(limits []limit) []*runtime.Rule {
	rules := make([]*runtime.Rule, len(limits))
	for i := range limits {
		rules[i] = &limits[i].rule
	}
	return rules
}

// mistaken returns a store that has Redis count by other rules than those declared.
func mistaken(store *runtime.RedisStore, limits []limit, mistake func(*runtime.Rule)) runtime.Store {
	rules := map[string]*runtime.Rule{}
	for _, l := range limits {
		mistake(&l.rule)
		rules[l.rule.Name] = &l.rule
	}
	return rawstore.Changed(store, rules)
}
