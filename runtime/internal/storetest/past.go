package storetest

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rawstore"
	"github.com/rategen/rategen/runtime/rule"
)

// A keeper is a trial of a rule that keeps the counts of former periods, of one key.
type keeper struct {
	*trial
	rule    *runtime.Rule
	limiter *runtime.Limiter
}

// keepers returns one for each state that such rules have.
func (t *trial) keepers() (all []keeper) {
	for name, change := range map[string]func(*runtime.Rule){
		"plain": func(*runtime.Rule) {}, "reserves": func(r *runtime.Rule) { r.Reserve = time.Hour }, "blocks": func(r *runtime.Rule) { r.Block = time.Hour },
		"carries": func(r *runtime.Rule) { r.Debt = rule.DebtCarry }, "shadow": func(r *runtime.Rule) { r.Mode = runtime.ModeShadow },
	} {
		r := t.rule
		r.Prefix, r.Window, r.Period, r.Anchor, r.Zone, r.Keep = Prefix(t.T)+name+":", 0, rule.Month, 1, "Europe/Berlin", 3
		change(&r)
		all = append(all, keeper{t, &r, runtime.New(t.Store, runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))})
	}
	return all
}

// limit returns a limit of the rule as it is now: one that a limiter knows does not change.
func (k *keeper) limit() runtime.Limit {
	now := *k.rule
	return now.Limit(runtime.NewKey().AddString("k"))
}

// of returns a charge of a cost, by the rule or another one on its key.
func (k *keeper) of(rule *runtime.Rule, cost int64) rawstore.Charge {
	return rawstore.Charge{Rule: rule, Key: []byte(bridge.LimiterOf(k.limiter).RedisKey(k.limit())), Max: rule.Max, Cost: cost}
}

// use has a call use so much for sure.
func (k *keeper) use(cost, left int64) {
	k.Helper()
	c := k.of(k.rule, cost)
	k.settle(c, k.admit(c, left), cost)
}

// ends returns when the period ends that it is now.
func (k *keeper) ends() int64 { return end(k.rule, k.Now()) }

// past wants the last periods to have used so much, and to follow each other.
func (k *keeper) past(want ...int64) []runtime.PastPeriod {
	k.Helper()
	usages, err := k.limiter.Usage(k.Context(), k.limit())
	if err != nil || len(usages) != 1 {
		k.Fatalf("%+v, %v", usages, err)
	}
	past := usages[0].Past
	var used []int64
	for i, p := range past {
		used = append(used, p.Used)
		if !p.Start.Before(p.End) || i > 0 && !p.End.Equal(past[i-1].Start) || p.Start.Location().String() != cmp.Or(k.rule.Zone, "UTC") {
			k.Fatalf("%v does not end where %v begins, in %q", p, past[max(0, i-1)], k.rule.Zone)
		}
	}
	if !slices.Equal(used, want) {
		k.Fatalf("%s at %v: %v used, want %v", k.rule.Prefix, time.UnixMicro(k.Now()).UTC(), used, want)
	}
	return past
}

// byCalendar wants periods to be those of the rule now.
func (k *keeper) byCalendar(past []runtime.PastPeriod) {
	k.Helper()
	for i, p := range past {
		if end(k.rule, p.Start.UnixMicro()) != p.End.UnixMicro() || end(k.rule, p.Start.UnixMicro()-1) != p.Start.UnixMicro() {
			k.Errorf("%v is no %v of the calendar", p, k.rule.Period)
		}
		if i == 0 && (p.End.UnixMicro() > k.Now() || end(k.rule, p.End.UnixMicro()) <= k.Now()) {
			k.Errorf("%v is not the last period", p)
		}
	}
}

// pastOfNow wants as many periods as are kept, and nothing used in those without charges.
func pastOfNow(t *trial) {
	for _, k := range t.keepers() {
		for keep := range 5 {
			k.rule.Keep = uint8(keep)
			want := make([]int64, keep)
			k.byCalendar(k.past(want...))
		}
		k.use(4, 6)
		k.byCalendar(k.past(0, 0, 0, 0))
		k.use(6, 0)
		k.byCalendar(k.past(0, 0, 0, 0))
	}
}

// pastCounts wants the count of each period at its place, before the first charge of the
// next one and after it, also where some are without charges, until it is no longer kept.
func pastCounts(t *trial) {
	for _, k := range t.keepers() {
		want := []int64{0, 0, 0}
		for _, cost := range []int64{4, 0, 7, 10, 3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1} {
			k.past(want...)
			if cost > 0 {
				k.use(cost, 10-cost)
			}
			over := k.of(k.rule, 11-cost)
			switch {
			case cost > 0 && k.rule.Block > 0:
				k.deny(over, 0)
				k.Advance(k.rule.Block)
			case cost > 0:
				k.deny(over, 10-cost)
			}
			k.byCalendar(k.past(want...))
			k.advanceTo(k.ends() - 1)
			k.past(want...)
			k.Advance(time.Microsecond)
			want = append([]int64{cost}, want[:2]...)
		}
		k.past(want...)
		if err := k.limiter.Reset(k.Context(), k.limit()); err != nil {
			k.Fatal(err)
		}
		k.past(0, 0, 0)
	}
}

// pastIsFinal wants nothing that happens to a charge after its period to change what was
// used of that.
func pastIsFinal(t *trial) {
	for _, k := range t.keepers() {
		k.advanceTo(k.ends() - time.Minute.Microseconds())
		first, second := k.of(k.rule, 6), k.of(k.rule, 3)
		made, other := k.admit(first, 4), k.admit(second, 1)
		if k.rule.Reserve > 0 {
			made.Mark, other.Mark = terms.Lasted, terms.Lasted
		}
		k.Advance(time.Minute)
		k.past(9, 0, 0)
		k.settle(first, made, 1)
		k.past(9, 0, 0)
		k.settle(second, other, 5) // 2 more are charged now
		k.past(9, 0, 0)
		k.use(1, 7)
		k.settle(first, made, 0)
		k.settle(second, other, 4)
		k.past(9, 0, 0)
		if r := k.peek(k.of(k.rule, 1))[0]; r.Remaining != 6 {
			k.Errorf("%s: %d left, want 6", k.rule.Prefix, r.Remaining)
		}
		k.advanceTo(k.ends())
		k.past(4, 9, 0)
		// A refund before the period ends is not in its count.
		whole := k.of(k.rule, 3)
		k.settle(whole, k.admit(whole, 7), 0)
		k.advanceTo(k.ends())
		k.past(0, 4, 9)
		if k.rule.Reserve == 0 {
			continue
		}
		// A reservation that lapses before the period ends is not in its count.
		k.admit(k.of(k.rule, 5), 5)
		k.Advance(k.rule.Reserve)
		k.use(2, 8)
		k.advanceTo(k.ends())
		k.past(2, 0, 4)
	}
}

// pastOfDebts wants what a period owes to be told of it, and of the one that pays.
func pastOfDebts(t *trial) {
	for _, k := range t.keepers() {
		c := k.of(k.rule, 8)
		k.settle(c, k.admit(c, 2), 13)
		k.past(0, 0, 0)
		k.advanceTo(k.ends())
		k.past(13, 0, 0)
		owed := int64(0)
		if k.rule.Debt == rule.DebtCarry {
			owed = 3
		}
		k.use(1, 9-owed)
		k.advanceTo(k.ends())
		k.past(1+owed, 13, 0)
	}
}

// pastOfChangedAnchor wants periods told as they were, whatever the anchor has become, and
// the first of another anchor to begin where the last one has ended.
func pastOfChangedAnchor(t *trial) {
	for _, k := range t.keepers() {
		k.advanceTo(k.ends() - 1_000_000)
		k.use(2, 8)
		k.rule.Anchor, k.rule.Zone = 15, "Asia/Kolkata"
		k.past(0, 0, 0)
		k.Advance(time.Second)
		first := k.Now()
		second := k.ends()
		k.use(3, 7)
		k.Advance(time.Hour)
		k.use(1, 6)
		k.advanceTo(second)
		k.use(5, 5)
		past := k.past(4, 2, 0)
		if past[0].Start.UnixMicro() != first || past[0].End.UnixMicro() != second || past[1].End.UnixMicro() != first {
			k.Errorf("%v, want the first of the new anchor from %v to %v", past, time.UnixMicro(first), time.UnixMicro(second))
		}
		if begin := past[1].Start.UnixMicro(); first-begin < 27*24*time.Hour.Microseconds() || first-begin > 32*24*time.Hour.Microseconds() {
			k.Errorf("%v, want the one of the old anchor to be a month", past[1])
		}
	}
}

// pastOfChangedKeep wants as much as is kept, whatever was to be kept before, and rules that
// keep nothing to count together with those that do.
func pastOfChangedKeep(t *trial) {
	for _, k := range t.keepers() {
		for cost := int64(1); cost <= 5; cost++ {
			k.rule.Keep = 4
			k.use(cost, 10-cost)
			k.advanceTo(k.ends())
		}
		k.past(5, 4, 3, 2)
		k.rule.Keep = 60
		k.past(append([]int64{5, 4, 3, 2, 1}, make([]int64, 55)...)...)
		k.rule.Keep = 2
		k.past(5, 4)
		k.use(6, 4)
		k.rule.Keep = 4
		k.past(5, 4, 0, 0)

		none := *k.rule
		none.Keep = 0
		k.admit(k.of(&none, 1), 3)
		k.advanceTo(k.ends())
		k.use(2, 8)
		k.advanceTo(k.ends())
		c := k.of(&none, 5)
		k.settle(c, k.admit(c, 5), 5) // begins a period that keeps nothing
		k.past(0, 0, 0, 0)
		k.use(1, 4)
		k.advanceTo(k.ends())
		k.byCalendar(k.past(6, 0, 0, 0))
		k.use(3, 7)
		k.byCalendar(k.past(6, 0, 0, 0))
		k.advanceTo(k.ends())
		k.byCalendar(k.past(3, 6, 0, 0))
	}
}

// pastTogether wants each limit to have its own past, where many keys begin a period in one
// batch, and where a call is looked at that has limits without one.
func pastTogether(t *trial) {
	keepers := t.keepers()
	log := rawstore.Charge{Rule: &runtime.Rule{Window: 366 * 24 * time.Hour, Max: 100}, Key: []byte(Prefix(t.T) + "log"), Max: 100, Cost: 1}
	cost := func(month int, i int) int64 { return int64(1 + month + i) }
	for month := range 3 {
		t.advanceTo(end(keepers[0].rule, t.Now()) - time.Minute.Microseconds())
		var calls []rawstore.Call
		var peeked []rawstore.Charge
		for i, k := range keepers {
			c := k.of(k.rule, cost(month, i))
			calls = append(calls, callOf(c), rawstore.Call{Charges: []rawstore.Charge{k.of(k.rule, 1), log}})
			peeked = append(peeked, c, log)
			log.Key = fmt.Appendf(nil, "%slog%d", Prefix(t.T), i)
		}
		for i, call := range t.takeAll(calls...) {
			if call.Err != nil || !call.Charges[0].Allowed {
				t.Fatalf("call %d: %+v", i, call)
			}
		}
		for i, r := range t.peek(peeked[:2*len(keepers)-1]...) {
			if i%2 == 1 {
				if r.Past != nil {
					t.Errorf("a log has a past: %+v", r.Past)
				}
				continue
			}
			var want []int64
			for before := month - 1; before >= 0; before-- {
				want = append(want, cost(before, i/2)+1)
			}
			for _, c := range r.Past.Counts {
				if len(want) == 0 || c.Used != want[0] {
					t.Fatalf("month %d, limit %d: %+v, want %v", month, i, r.Past.Counts, want)
				}
				want = want[1:]
			}
			if len(want) > 0 {
				t.Errorf("month %d, limit %d: %+v, and not %v", month, i, r.Past.Counts, want)
			}
		}
		t.advanceTo(end(keepers[0].rule, t.Now()))
	}
}

// pastAndSteps wants counts to stay when the clock steps back, and none if it steps so far
// that the key is forgotten.
func pastAndSteps(t *trial) {
	for _, k := range t.keepers() {
		k.use(4, 6)
		k.advanceTo(k.ends())
		k.use(3, 7)
		k.Advance(-time.Hour)
		k.past(4, 0, 0)
		k.use(2, 5)
		k.Advance(2 * time.Hour)
		k.past(4, 0, 0)
		k.advanceTo(k.ends())
		k.past(5, 4, 0)
		k.Advance(-100 * 24 * time.Hour)
		k.past(0, 0, 0)
		k.use(1, 9)
		k.past(0, 0, 0)
	}
}
