// Package storetest holds what every [runtime.Store] must do, as tests that
// run over any of them:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Subject { ... })
//	}
package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A Subject is a store under test and its clock.
type Subject struct {
	Store runtime.Store
	// Now returns the store's clock, in microseconds since 1970.
	Now func() int64
	// Advance returns when the store's clock has come forward by d, and has
	// come forward by exactly d if the subject is Exact.
	Advance func(d time.Duration)
	// Exact says that the clock stands still but for Advance, and that a
	// negative d sets it back.
	Exact bool
	// Slow says that a call costs milliseconds of processor time. Fewer numbers and
	// seeds are tried then: subjects that are not slow try all.
	Slow bool
}

// Run runs the suite for every way of counting. start returns a store for each
// test; its keys need not be gone, because no two tests name the same one.
func Run(t *testing.T, start func(t *testing.T) Subject) { run(t, Rules(), 1, start) }

// RunFew is Run, for a quarter of the ways of counting under the race detector. It is for
// subjects whose tests cost much, and have one goroutine ask after the other.
func RunFew(t *testing.T, start func(t *testing.T) Subject) {
	rules := Rules()
	var few []runtime.Rule
	for i := 0; i < len(rules); i += len(rules) / effort.Few(len(rules)) {
		few = append(few, rules[i])
	}
	run(t, few, 1, start)
}

// RunSome is Run in a full run. A quick one has one in 36 of the tests for each way of
// counting, other ones for each. It is for subjects that cost much and carry out the
// scripts, which another subject tries with all tests.
func RunSome(t *testing.T, start func(t *testing.T) Subject) {
	run(t, Rules(), effort.Choose(effort.ChooseMore(36, 12), 1), start)
}

// run runs one of so many tests for a rule, and the one after it for the next rule.
func run(t *testing.T, rules []runtime.Rule, every int, start func(t *testing.T) Subject) {
	for r, rule := range rules {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			for i, test := range tests {
				if i%every != r%every {
					continue
				}
				t.Run(test.name, func(t *testing.T) {
					if test.skip != nil && test.skip(&rule) || test.passes && isCalendar(&rule) {
						t.Skip("not for this algorithm")
					}
					t.Parallel()
					subject := start(t)
					if test.exact && !subject.Exact {
						t.Skip("needs a clock that stands still")
					}
					test.run(&trial{T: t, Subject: subject, rule: rule})
				})
			}
		})
	}
}

// tests is the suite.
var tests = []struct {
	name   string
	run    func(*trial)
	exact  bool // only with a clock that stands still
	passes bool // the rule's window is set, and passes
	skip   func(*runtime.Rule) bool
}{
	{name: "count down", run: countDown},
	{name: "denied changes nothing", run: deniedChangesNothing},
	{name: "peek charges nothing", run: peekChargesNothing},
	{name: "cost", run: costs},
	{name: "all or none", run: allOrNone},
	{name: "shadow", run: shadow},
	{name: "batch in order", run: batchInOrder},
	{name: "batch of strangers", run: batchOfStrangers},
	{name: "no charges", run: noCharges},
	{name: "concurrent", run: concurrent},
	{name: "changed max", run: changedMax, skip: isQueue}, // its line does not change
	{name: "refund", run: refund, skip: isQueue},          // which gives back the last turn only
	{name: "refund is clamped", run: refundIsClamped},
	{name: "refund of what has left", passes: true, run: refundOfWhatHasLeft},
	{name: "refund of nothing", run: refundOfNothing},
	{name: "refund twice", run: refundTwice, skip: not(isLog)},
	{name: "settle for less", run: settleForLess, skip: isQueue},
	{name: "settle for more", run: settleForMore},
	{name: "settle for the same", run: settleForTheSame},
	{name: "settle into debt", run: settleIntoDebt, exact: true, skip: isQueue}, // it would wait
	{name: "settle into endless debt", passes: true, run: settleIntoEndlessDebt, skip: isLog},
	{name: "settle after the window", passes: true, run: settleAfterTheWindow, exact: true},
	{name: "settle what is gone", run: settleWhatIsGone},
	{name: "reset", run: reset},
	{name: "block", run: block, skip: blocksNobody},
	{name: "block of several", run: blockOfSeveral, skip: blocksNobody},
	{name: "block in a batch", run: blockInBatch, skip: blocksNobody},
	{name: "block of a changed limit", run: blockOfChangedLimit, skip: blocksNobody},
	{name: "block edge, of several", passes: true, run: blockEdgeOfSeveral, exact: true, skip: blocksNobody},
	{name: "block edge", passes: true, run: blockEdge, exact: true, skip: blocksNobody},
	{name: "block, retry after", run: blockRetry, exact: true, skip: blocksNobody},
	{name: "block again", passes: true, run: blockAgain, exact: true, skip: blocksNobody},
	{name: "block and settle", run: blockAndSettle, exact: true, skip: blocksNobody},
	{name: "block and refund", run: blockAndRefund, exact: true, skip: blocksNobody},
	{name: "hold", run: holdDenies, skip: holdsNobody},
	{name: "hold edge", passes: true, run: holdEdge, exact: true, skip: holdsNobody},
	{name: "hold, clock steps back", run: holdWhenClockStepsBack, exact: true, skip: holdsNobody},
	{name: "no cost and block", run: freeAndBlock, skip: blocksNobody},
	{name: "no cost and hold", run: freeAndHold, skip: isPermits},
	{name: "window", passes: true, run: window},
	{name: "retry after", passes: true, run: retryAfter},
	{name: "retry after, to the microsecond", passes: true, run: retryExact, exact: true},
	{name: "more after, to the microsecond", run: moreExact, exact: true, skip: func(r *runtime.Rule) bool { return r.Algorithm != runtime.SlidingLog && !isCounter(r) || r.Reserve > 0 }},
	{name: "window edge", passes: true, run: windowEdge, exact: true},
	{name: "bucket edge", run: bucketEdge, exact: true, skip: not(isCounter)},
	{name: "clock steps back", passes: true, run: clockStepsBack, exact: true, skip: isPermits},
	{name: "short windows", passes: true, run: shortWindows, exact: true},
	{name: "longest window", passes: true, run: longestWindow},
	{name: "longest window, to the end", passes: true, run: longestWindowEnds, exact: true},
	{name: "largest cost", run: largeCost},
	{name: "max 1e12", run: largeMax, skip: isLog},
	{name: "amounts", run: amounts, skip: not(isFixed)},
	{name: "amount owed", run: amountOwed, skip: not(isFixed)},
	{name: "period", run: period, skip: not(isCalendar)},
	{name: "period edge", run: periodEdge, exact: true, skip: not(isCalendar)},
	{name: "period of a changed anchor", run: periodOfChangedAnchor, exact: true, skip: not(isCalendar)},
	{name: "period, settled later", run: periodSettledLater, exact: true, skip: not(isCalendar)},
	{name: "period, refunded later", run: periodRefundedLater, exact: true, skip: not(isCalendar)},
	{name: "period and block", run: periodAndBlock, exact: true, skip: not(isCalendar)},
	{name: "period, clock steps back", run: periodClockStepsBack, exact: true, skip: not(isCalendar)},
	{name: "past", run: pastOfNow, skip: not(isCalendar)},
	{name: "past counts", run: pastCounts, exact: true, skip: not(isCalendar)},
	{name: "past is final", run: pastIsFinal, exact: true, skip: not(isCalendar)},
	{name: "past of debts", run: pastOfDebts, exact: true, skip: not(isCalendar)},
	{name: "past of a changed anchor", run: pastOfChangedAnchor, exact: true, skip: not(isCalendar)},
	{name: "past of a changed keep", run: pastOfChangedKeep, exact: true, skip: not(isCalendar)},
	{name: "past together", run: pastTogether, exact: true, skip: not(isCalendar)},
	{name: "past, clock steps back", run: pastAndSteps, exact: true, skip: not(isCalendar)},
	{name: "shares", run: sharesAreTold, exact: true, skip: not(isCalendar)},
	{name: "clock steps far back", passes: true, run: clockStepsFarBack, exact: true},
	{name: "late refund", run: lateRefund, exact: true, skip: not(isMeter)},
	{name: "drains evenly", run: drainsEvenly, exact: true, skip: not(isMeter)},
	{name: "refund in any order", run: refundInAnyOrder, exact: true, skip: not(isMeter)},
	{name: "long calls", run: longCalls, exact: true, skip: not(isMeter)},
	{name: "refund of an earlier life", run: refundOfAnEarlierLife},
	{name: "refunds at random", run: randomRefunds, exact: true, skip: not(isMeter)},
	{name: "leavers of a line", run: leaversOfALine, exact: true, skip: not(isQueue)},
	{name: "leaver of an earlier line", run: leaverOfAnEarlierLine, exact: true, skip: not(isQueue)},
	{name: "slow drain", run: slowDrain, exact: true, skip: not(isMeter)},
	{name: "ids", run: ids, skip: isQueue},     // a limiter would wait for its turn
	{name: "usage", run: usage, skip: isQueue}, // a limiter would wait for its turn
	{name: "queue", run: queue, exact: true, skip: not(isQueue)},
	{name: "line", run: line, exact: true, skip: not(isQueue)},
	{name: "permits are renewed", run: permitsAreRenewed, exact: true, skip: not(isPermits)},
	{name: "permits are written again", run: permitsAreWrittenAgain, skip: not(isPermits)},
	{name: "permits are reset", run: permitsAreReset, skip: not(isPermits)},
	{name: "permits of a longer window", run: permitsOfALongerWindow, skip: not(isPermits)},
	{name: "permit hint", run: permitHint, exact: true, skip: not(isPermits)},
	{name: "permits after a step", run: permitsAfterAStep, exact: true, skip: not(isPermits)},
	{name: "reservations", run: reservationsOnAnyClock, skip: not(isFixed)},
	{name: "reservations lapse", run: reservationsLapse, exact: true, skip: not(isFixed)},
	{name: "reservations are settled", run: reservationsAreSettled, exact: true, skip: not(isFixed)},
	{name: "reservations are charged again", run: reservationsAreChargedAgain, exact: true, skip: not(isFixed)},
	{name: "reservations are reset", run: reservationsAreReset, skip: not(isFixed)},
	{name: "open reservations", run: openReservations, skip: not(isFixed)},
	{name: "reservations of the past", run: reservationsOfThePast, exact: true, skip: not(isFixed)},
	{name: "debts", run: debts, exact: true, skip: func(r *runtime.Rule) bool { return isPermits(r) || isQueue(r) }},
	{name: "debts are kept", run: debtsAreKept, exact: true, skip: not(isFixed)},
	{name: "debts of other anchors", run: debtsOfOtherAnchors, exact: true, skip: not(isCalendar)},
	{name: "lapsed permits go", run: lapsedPermitsGo, exact: true, skip: not(isPermits)},
}

// Rules returns a rule for every way of counting, named after it.
func Rules() []runtime.Rule {
	rules := []runtime.Rule{
		{Name: "zset"},
		{Name: "packed", Storage: runtime.StoragePacked},
		{Name: "zset in slices", Resolution: 10 * time.Millisecond},
		{Name: "packed in slices", Resolution: 10 * time.Millisecond, Storage: runtime.StoragePacked},
		{Name: "equal buckets", Algorithm: runtime.SlidingCounter},
		{Name: "layered buckets", Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)},
		{Name: "adaptive buckets", Algorithm: runtime.SlidingCounter, Buckets: rule.AdaptiveBuckets()},
		{Name: "fixed window", Algorithm: runtime.FixedWindow},
		{Name: "calendar", Algorithm: runtime.FixedWindow, Period: rule.Year, Anchor: farFrom(time.Now())},
		{Name: "token bucket", Algorithm: runtime.TokenBucket},
		{Name: "leaky bucket", Algorithm: runtime.LeakyBucket},
		{Name: "queue", Algorithm: runtime.LeakyBucket, Wait: 366 * 24 * time.Hour},
		{Name: "concurrency", Algorithm: runtime.Concurrency},
	}
	for i := range rules {
		// So long that no test on a real clock sees it move.
		rules[i].Max = 10
		if !isCalendar(&rules[i]) {
			rules[i].Window = 10 * time.Hour
		}
	}
	return rules
}

// farFrom returns an anchor of years that do not end soon.
func farFrom(now time.Time) int { return 100*(int(now.AddDate(0, 6, 0).Month())) + 1 }

func isCalendar(r *runtime.Rule) bool { return r.Period != rule.NoPeriod }

func isLog(r *runtime.Rule) bool { return r.Algorithm == runtime.SlidingLog || isPermits(r) }

// blocksNobody reports whether the rule cannot have a Block: a queue lets calls
// wait, and a permit comes back.
func blocksNobody(r *runtime.Rule) bool { return isQueue(r) || isPermits(r) }

// holdsNobody reports whether the rule cannot have a Hold. For a queue nobody can tell
// the hold from its line here.
func holdsNobody(r *runtime.Rule) bool { return isQueue(r) || isPermits(r) }

func isPermits(r *runtime.Rule) bool { return r.Algorithm == runtime.Concurrency }
func isFixed(r *runtime.Rule) bool   { return r.Algorithm == runtime.FixedWindow }
func isCounter(r *runtime.Rule) bool { return r.Algorithm == runtime.SlidingCounter }
func isQueue(r *runtime.Rule) bool   { return r.Wait > 0 }
func isBucket(r *runtime.Rule) bool {
	return r.Algorithm == runtime.TokenBucket || r.Algorithm == runtime.LeakyBucket
}

// isMeter reports whether the rule is a bucket that nobody waits for.
func isMeter(r *runtime.Rule) bool { return isBucket(r) && !isQueue(r) }

func not(f func(*runtime.Rule) bool) func(*runtime.Rule) bool {
	return func(r *runtime.Rule) bool { return !f(r) }
}

// A trial is one test over one rule.
type trial struct {
	*testing.T
	Subject
	rule runtime.Rule
}

// every returns the step by which a trial is to go through a range of what is much alike.
func (t *trial) every(slow int) int {
	if t.Slow {
		return slow
	}
	return 1
}

// seeds returns how many seeds of what is tried at random a trial is to try.
func (t *trial) seeds(quick, full uint64) uint64 {
	if t.Slow {
		return 1
	}
	return effort.Choose(quick, full)
}

// charge returns a charge of the trial's rule to a key of this test's own. Keys
// that differ in name lie in different slots of a cluster.
func (t *trial) charge(name string, cost int64) rawstore.Charge {
	rule := t.rule
	if isCalendar(&rule) {
		rule.Window = 0
	}
	if isQueue(&rule) && rule.Burst == 0 {
		rule.Burst = rule.Max // in line: without it only the wait counts
	}
	return rawstore.Charge{Rule: &rule, Key: []byte(Prefix(t.T) + name), Max: rule.Max, Cost: cost, Wait: rule.Wait}
}

// Prefix returns what the keys of a test start with.
func Prefix(t *testing.T) string {
	return "storetest:" + strings.NewReplacer(" ", "-", "/", ":").Replace(t.Name()) + ":"
}

// take takes one call and returns its results.
func (t *trial) take(charges ...rawstore.Charge) []terms.Result {
	t.Helper()
	return t.results(t.takeAll(rawstore.Call{Charges: charges})[0])
}

// takeAll takes calls in one batch.
func (t *trial) takeAll(calls ...rawstore.Call) []rawstore.Call {
	t.Helper()
	if err := rawstore.On(t.Store).Take(t.Context(), calls); err != nil {
		t.Fatalf("take: %v", err)
	}
	return calls
}

// peek looks at one call and returns its results.
func (t *trial) peek(charges ...rawstore.Charge) []terms.Result {
	t.Helper()
	calls := []rawstore.Call{{Charges: charges}}
	if err := rawstore.On(t.Store).Peek(t.Context(), calls); err != nil {
		t.Fatalf("peek: %v", err)
	}
	return t.results(calls[0])
}

func (t *trial) results(call rawstore.Call) []terms.Result {
	t.Helper()
	if call.Err != nil {
		t.Fatalf("a call failed: %v", call.Err)
	}
	results := make([]terms.Result, len(call.Charges))
	for i := range results {
		results[i] = call.Charges[i].Result
	}
	return results
}

// admit takes one charge, which must find room and leave as much as told.
func (t *trial) admit(c rawstore.Charge, remaining int64) terms.Result {
	t.Helper()
	r := t.take(c)[0]
	if !r.Allowed || r.Remaining != remaining || r.RetryAfter != 0 || r.At == 0 || r.ResetAfter <= 0 {
		t.Fatalf("cost %d: got %+v, want it admitted with %d left", c.Cost, r, remaining)
	}
	return r
}

// deny takes one charge, which must find no room but as much as told.
func (t *trial) deny(c rawstore.Charge, remaining int64) terms.Result {
	t.Helper()
	r := t.take(c)[0]
	if r.Allowed || r.Remaining != remaining || r.RetryAfter <= 0 || r.At != 0 || r.Delay != 0 {
		t.Fatalf("cost %d: got %+v, want it denied with %d left", c.Cost, r, remaining)
	}
	return r
}

// left wants a limit to have that much left.
func (t *trial) left(name string, want int64) {
	t.Helper()
	if r := t.peek(t.charge(name, 1))[0]; r.Remaining != want || r.Allowed != (want > 0) {
		t.Fatalf("%s: got %+v, want %d left", name, r, want)
	}
}

// refund gives back a charge that had a result, or a part of it.
func (t *trial) refund(c rawstore.Charge, r terms.Result) {
	t.Helper()
	t.settle(c, r, 0)
}

// settle makes a charge that had a result one of another cost.
func (t *trial) settle(c rawstore.Charge, r terms.Result, cost int64) {
	t.Helper()
	c.At, c.Mark, c.Settled = r.At, r.Mark, cost
	if err := rawstore.On(t.Store).Settle(t.Context(), []rawstore.Charge{c}); err != nil {
		t.Fatalf("settle: %v", err)
	}
}
