package script_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/storetest"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// line is a queue beside other limits.
var line = &runtime.Rule{Name: "line", Algorithm: runtime.LeakyBucket, Window: 100 * time.Millisecond, Max: 10, Wait: time.Hour}

// drive runs one random sequence and returns the first difference.
func drive(t *rapid.T, db *database, base *runtime.Rule, load modelLoad) error {
	ctx := context.Background()
	db.client.FlushDB(ctx)
	// A fixed time, so that a failure can be repeated, and far ahead of the
	// real one, so that Redis expires nothing meanwhile.
	now := time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro() +
		rapid.Int64Range(0, 1_000_000).Draw(t, "start")
	memory := memstate.NewStore(1000)
	memory.Clock, memory.Tells = func() int64 { return now }, true
	var charged []rawstore.Charge
	other, longer := *base, *base // the same limit in shadow mode, and in another version
	other.Mode, longer.Window = runtime.ModeShadow, base.Window*2
	edge, far := int64(100_000), int64(300_000)
	if base.Period != rule.NoPeriod {
		now -= 1_000_000 // into the last second of the year, of a month and of a day
		edge = 24 * time.Hour.Microseconds()
		far = 2 * edge
		longer.Window, longer.Period, longer.Anchor = 0, rule.Month, 15
		if base.Keep > 0 || base.Ledger > 0 { // or its keys would live longer
			longer.Period, longer.Anchor, longer.Zone = base.Period, 0, "Asia/Kolkata"
		}
	}
	rules := []*runtime.Rule{base, &other, &longer}
	if base.Block > 0 {
		another := *base
		another.Block = 70 * time.Millisecond
		rules = append(rules, &another)
	}
	if base.Resolution > 0 {
		coarser := *base
		coarser.Resolution *= 5
		rules = append(rules, &coarser)
	}

	maxima := load.max
	stores := [2]rawstore.Store{{Store: memory}}
	shown, looked := int64(0), map[string]int64{} // by Redis's clock, when it was set and keys last expired
	var told [2][]terms.Reached
	hears := rapid.Bool()
	// listening returns charges of which some have their shares told to the i-th list.
	listening := func(charges []rawstore.Charge, i int) []rawstore.Charge {
		charges = slices.Clone(charges)
		for j := range charges {
			if charges[j].Reached != nil {
				charges[j].Reached = func(r terms.Reached) { told[i] = append(told[i], r) }
			}
		}
		return charges
	}
	// both has both stores do the same with keys, of which those expire before that are to.
	both := func(do func(rawstore.Store, int) error, keys ...string) error {
		if now != shown || slices.ContainsFunc(keys, func(key string) bool { return looked[key] != now }) {
			if err := redisclock.Set(ctx, db.client, now, keys...); err != nil {
				return err
			}
			shown = now
			for _, key := range keys {
				looked[key] = now
			}
		}
		stores[1] = rawstore.Wrap(db.store)
		if rapid.Bool().Draw(t, "wide scripts") { // which keep the same bytes
			stores[1] = rawstore.Wrap(db.wide)
		}
		if err := errors.Join(do(stores[0], 0), do(stores[1], 1)); err != nil {
			return err
		}
		if !slices.Equal(told[0], told[1]) {
			return fmt.Errorf("at %d: script tells other shares than the model:\n%+v\nmodel:\n%+v", now, told[1], told[0])
		}
		return nil
	}
	drawKey := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key") }
	for range rapid.IntRange(1, effort.Choose(30, 60)).Draw(t, "steps") {
		usual := rapid.OneOf(
			rapid.Just(int64(0)),
			rapid.Int64Range(1, 10),
			rapid.Int64Range(1, 30_000),
			rapid.Int64Range(90_000, 110_000),
			rapid.Int64Range(-20_000, 0),
			rapid.SampledFrom([]int64{100_000, 99_999, 100_001, 50_000, 7_000, edge, edge}),
		)
		if rapid.IntRange(0, 99).Draw(t, "far") == 99 { // seldom, since all state is lost then
			now += rapid.SampledFrom([]int64{-100_000, -100_001, -300_000, -3_600_000_000, -far}).Draw(t, "step")
		} else {
			now += usual.Draw(t, "step")
		}
		switch op := rapid.SampledFrom([]string{"take", "take", "take", "take", "peek", "settle", "settle", "reset", "renew", "hold", "restore"}).Draw(t, "op"); op {
		case "take", "peek":
			calls := make([]rawstore.Call, rapid.IntRange(1, 3).Draw(t, "calls"))
			var keys []string
			for i := range calls {
				for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 2, rapid.ID).Draw(t, "keys") {
					declared := rapid.SampledFrom(rules).Draw(t, "rule")
					if declared == &longer && layered(base) {
						declared = base // the key of a layered counter names its window
					}
					limit := rapid.SampledFrom(maxima).Draw(t, "max")
					most := limit
					if declared.Burst > 0 {
						most = declared.Burst
					}
					keys = append(keys, key)
					cost := load.cost(most)
					if declared.Block > 0 || declared.Hold { // else a call at no cost is not asked about
						cost = rapid.OneOf(rapid.Just(int64(0)), cost, cost, cost)
					}
					calls[i].Charges = append(calls[i].Charges, rawstore.Charge{
						Rule: declared, Key: []byte(key), Max: limit, Wait: declared.Wait, Cost: cost.Draw(t, "cost"),
					})
					last := &calls[i].Charges[len(calls[i].Charges)-1]
					if declared.Algorithm == runtime.Concurrency {
						last.Process = rapid.Int64Range(-3, 3).Draw(t, "process") << 40
						last.Held = rapid.SampledFrom([]int64{0, 0, 1, 3, limit, -limit}).Draw(t, "held")
					}
					if declared.Headroom != 0 {
						last.Tenant = []byte(rapid.SampledFrom([]string{"", "loud", "loud", "quiet"}).Draw(t, "tenant"))
						last.Weight = rapid.SampledFrom([]int64{1, 1, 1, 3, 1_000_000}).Draw(t, "weight")
					}
					if hears.Draw(t, "hears") {
						last.Reached = func(terms.Reached) {}
					}
				}
			}
			for i := range calls {
				if op == "take" && rapid.IntRange(0, 2).Draw(t, "beside a queue") == 0 {
					for j := range calls[i].Charges {
						calls[i].Charges[j].Deferred = true
					}
					wait := time.Duration(rapid.IntRange(0, 300).Draw(t, "wait")) * time.Millisecond
					calls[i].Charges = slices.Insert(calls[i].Charges, 0, rawstore.Charge{Rule: line, Key: []byte("line"), Max: 10, Wait: wait, Cost: 1})
					keys = append(keys, "line")
				}
			}
			answers := [2][]rawstore.Call{clone(calls), clone(calls)}
			for i := range answers {
				for j := range answers[i] {
					answers[i][j].Charges = listening(answers[i][j].Charges, i)
				}
			}
			do := map[string]storetest.Operation{"peek": peek, "take": take}[op]
			if err := both(func(s rawstore.Store, i int) error { return do(s, ctx, answers[i]) }, keys...); err != nil {
				return err
			}
			if slices.EqualFunc(answers[0], answers[1], sameAnswer) {
				// cmp would take longer than Redis to find that out.
			} else if diff := cmp.Diff(answers[0], answers[1], cmp.Comparer(func(a, b *runtime.Rule) bool { return a == b }), cmpopts.IgnoreFields(rawstore.Charge{}, "Reached"), cmpopts.EquateErrors()); diff != "" {
				return fmt.Errorf("%s at %d: script differs from model (-model +script):\n%s", op, now, diff)
			}
			for _, call := range answers[1] {
				for _, c := range call.Charges {
					if c.At != 0 && c.Rule != line {
						charged = append(charged, c)
					}
				}
			}
		case "settle", "renew":
			if len(charged) == 0 || op == "renew" && base.Algorithm != runtime.Concurrency && base.Reserve == 0 {
				continue
			}
			var charges []rawstore.Charge
			var keys []string
			for _, c := range rapid.SliceOfN(rapid.SampledFrom(charged), 1, 6).Draw(t, "charges") {
				c.Wait, c.Process, c.Result = 0, 0, terms.Result{At: c.At, Mark: c.Mark}
				c.Settled = rapid.OneOf(
					rapid.Just(int64(0)),
					rapid.Int64Range(0, c.Cost),
					rapid.Int64Range(c.Cost, c.Cost+20),
					rapid.Int64Range(c.Cost, c.Cost+rule.MaxLogCost),
				).Draw(t, "settled")
				if op == "settle" && base.Algorithm == runtime.Concurrency && rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
					c.At, c.Settled, c.Process = 0, 0, rapid.Int64Range(1, 3).Draw(t, "process")<<40
				}
				if base.Reserve > 0 {
					c.Mark = rapid.Int64Range(0, 2).Draw(t, "mark")
				}
				charges, keys = append(charges, c), append(keys, string(c.Key))
			}
			var renewed [2][]int64
			if err := both(func(s rawstore.Store, i int) error {
				if op == "settle" {
					return s.Settle(ctx, listening(charges, i))
				}
				var calls []rawstore.Call
				for _, c := range listening(charges, i) {
					calls = append(calls, rawstore.Call{Charges: []rawstore.Charge{c}})
				}
				err := s.Renew(ctx, calls)
				for _, call := range calls {
					err = errors.Join(err, call.Err)
					c := call.Charges[0]
					renewed[i] = append(renewed[i], c.At)
					if base.Reserve > 0 && c.At != 0 && i == 1 {
						charged = append(charged, c)
					}
				}
				return err
			}, keys...); err != nil {
				return err
			}
			if !slices.Equal(renewed[0], renewed[1]) {
				return fmt.Errorf("%s at %d: script differs from model: model %v, script %v", op, now, renewed[0], renewed[1])
			}
		case "hold":
			if base.Block == 0 {
				continue
			}
			key := drawKey()
			hold := rawstore.Charge{Rule: rapid.SampledFrom(rules).Draw(t, "rule"), Key: []byte(key), Max: load.max[0],
				Wait: time.Duration(rapid.SampledFrom([]int64{0, 1, 5_000, 70_000, 250_000, 1_000_000}).Draw(t, "hold")) * time.Microsecond}
			if hold.Rule == &longer && layered(base) {
				continue
			}
			if err := both(func(s rawstore.Store, _ int) error { return s.Hold(ctx, []rawstore.Charge{hold}) }, key); err != nil {
				return err
			}
		case "restore":
			if base.Ledger == rule.LedgerOff {
				continue
			}
			key, amount, wrong := drawKey(), rapid.Int64Range(1, 12).Draw(t, "restored"), rapid.IntRange(0, 3).Draw(t, "epoch") == 0
			var ats [2]int64
			if err := both(func(s rawstore.Store, i int) error {
				calls := storetest.Single(base, key, 1)
				err := s.Peek(ctx, calls)
				at := max(calls[0].Charges[0].Past.Entry.Epoch, terms.NoEpoch)
				if wrong {
					at++
				}
				calls = storetest.Single(base, key, -amount)
				calls[0].Charges[0].At = at
				err = errors.Join(err, s.Renew(ctx, calls), calls[0].Err)
				ats[i] = min(1, calls[0].Charges[0].At)
				return err
			}, key); err != nil {
				return err
			}
			if ats[0] != ats[1] {
				return fmt.Errorf("restore at %d: script differs from model: %v", now, ats)
			}
		case "reset":
			key := drawKey()
			if err := both(func(s rawstore.Store, _ int) error {
				return s.Reset(ctx, []rawstore.Charge{{Rule: base, Key: []byte(key)}})
			}, key); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameAnswer(a, b rawstore.Call) bool {
	return a.Err == nil && b.Err == nil && slices.EqualFunc(a.Charges, b.Charges, func(a, b rawstore.Charge) bool {
		return a.Result == b.Result
	})
}

func clone(calls []rawstore.Call) []rawstore.Call {
	out := make([]rawstore.Call, len(calls))
	for i := range calls {
		out[i].Charges = append([]rawstore.Charge(nil), calls[i].Charges...)
	}
	return out
}

// stored reports whether the rule's store keeps every event or permit.
func stored(r *runtime.Rule) bool {
	return r.Algorithm == runtime.SlidingLog || r.Algorithm == runtime.Concurrency
}

func layered(r *runtime.Rule) bool {
	return r.Buckets == rule.LayeredBuckets(4, 5) || r.Buckets == rule.LayeredBuckets(1, 9)
}
