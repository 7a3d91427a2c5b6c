package main

import (
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/runtime"
)

// A kind is one way to limit calls, and how to judge what became of them.
type kind struct {
	rule runtime.Rule
	// history is set if every call is recorded with the time of its charge, so that
	// each decision can be judged exactly.
	history func(*runtime.Rule) judge.History
	// most is how much any window may hold at most.
	most int64
	// room is how much a window must hold, with the call, before a call may be
	// denied. It is max+1 for a limit that is exact.
	room    int64
	cost    int64 // calls cost from 1 to this
	refund  bool  // half of the calls that are admitted are refunded
	settle  bool  // half of the calls that are admitted turn out to cost 1
	fresh   bool  // every call has a key of its own
	pair    bool  // the call is charged to a second limit too
	changes bool  // an override changes the max
}

const (
	window   = 2 * time.Second
	most     = 12
	maxCost  = 3
	queueing = 200 * time.Millisecond
	blocked  = 500 * time.Millisecond

	// Permits last so long, and so many are held at a time.
	permitWindow = 10 * time.Second
	permits      = 3

	// replicas is how many processes a limit is divided among if Redis is gone.
	replicas = 4
	// overridden is the max of a changed rule.
	overridden = 5
)

// The kinds by number.
const (
	kindPermits = iota
	kindLog
	kindPair
	kindPartner
	kindChanged
	kindLocal
)

// kinds are all kinds. A call says by number which it is of.
var kinds = []kind{
	kindPermits: {rule: runtime.Rule{Name: "permits", Algorithm: runtime.Concurrency, Window: permitWindow, Max: permits, Fail: runtime.FailClosed}, cost: 2},
	kindLog:     {rule: log("log"), most: most, room: most + 1, cost: maxCost},
	kindPair:    {rule: log("pair"), most: most, room: most + 1, cost: maxCost, pair: true},
	kindPartner: {rule: log("partner"), most: most, room: most + 1, cost: maxCost},
	kindChanged: {rule: log("changed"), most: most, room: most + 1, cost: maxCost, changes: true},
	kindLocal:   {rule: with(log("local"), func(r *runtime.Rule) { r.Fail = runtime.FailLocal }), most: most, room: most + 1, cost: 1},

	{rule: with(log("exact zset"), nil), history: judge.NewLogHistory, cost: maxCost},
	{rule: with(log("exact packed"), func(r *runtime.Rule) { r.Storage = runtime.StoragePacked }), history: judge.NewLogHistory, cost: maxCost},
	{rule: with(log("exact fixed"), func(r *runtime.Rule) { r.Algorithm = runtime.FixedWindow }), history: judge.NewFixedHistory, cost: maxCost},

	{rule: counter("counter", runtime.EqualBuckets(60)), most: most, room: most + 1, cost: maxCost},
	{rule: counter("layers", runtime.LayeredBuckets(6, 10)), most: most, room: most + 1, cost: maxCost},
	{rule: counter("adaptive", runtime.AdaptiveBuckets()), most: most, room: most + 1, cost: maxCost},
	{rule: with(log("open"), func(r *runtime.Rule) {
		r.Algorithm, r.Fail = runtime.FixedWindow, runtime.FailOpen
	}), most: 2 * most, room: most + 1, cost: maxCost},
	// A bucket may deny what fits by less than a millionth of an event.
	{rule: with(log("bucket"), func(r *runtime.Rule) { r.Algorithm = runtime.TokenBucket }), most: 2 * most, room: most, cost: maxCost},
	{rule: with(log("queue"), func(r *runtime.Rule) {
		r.Algorithm, r.Wait = runtime.LeakyBucket, queueing
	}), most: 2*most + queued, room: queued + 1, cost: 1},
	{rule: log("refunded"), most: most, room: most + 1, cost: maxCost, refund: true},
	{rule: with(log("settled"), func(r *runtime.Rule) { r.Algorithm = runtime.LeakyBucket }), most: 2 * most, room: most, cost: maxCost, settle: true},
	{rule: with(log("blocking"), func(r *runtime.Rule) { r.Storage, r.Block = runtime.StoragePacked, blocked }), most: most, room: most + 1, cost: maxCost},
	{rule: with(log("shadow"), func(r *runtime.Rule) { r.Mode = runtime.ModeShadow }), most: 1 << 40, room: 1 << 40, cost: maxCost},
	{rule: log("fresh"), most: most, room: most + 1, cost: maxCost, fresh: true},
}

// queued is how much drains from a queue while a call may wait.
const queued = most * int64(queueing) / int64(window)

func log(name string) runtime.Rule {
	return runtime.Rule{Name: name, Window: window, Max: most, Fail: runtime.FailClosed}
}

func counter(name string, b runtime.Buckets) runtime.Rule {
	return with(log(name), func(r *runtime.Rule) { r.Algorithm, r.Buckets = runtime.SlidingCounter, b })
}

func with(r runtime.Rule, change func(*runtime.Rule)) runtime.Rule {
	if change != nil {
		change(&r)
	}
	return r
}
