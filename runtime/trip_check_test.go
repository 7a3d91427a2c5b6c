package runtime_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// check compares what the callers were told with what was charged.
func (l *tripLoad) check(t *testing.T, store *runtime.RedisStore) {
	t.Helper()
	recalled := l.recalledForLost()
	for _, k := range l.keys {
		k.check(t, store, recalled)
	}
	executed := map[outcome]int64{}
	ids := slices.Collect(maps.Keys(l.singles))
	for part := range slices.Chunk(ids, 500) {
		var calls []rawstore.Call
		for _, id := range part {
			key := []byte(l.singles[id].key)
			calls = append(calls, rawstore.Call{Charges: []rawstore.Charge{{Rule: l.once, Key: key, Max: l.once.Max, Cost: 1}}})
		}
		if err := rawstore.On(store).Peek(context.Background(), calls); err != nil {
			t.Fatal(err)
		}
		for i, id := range part {
			if calls[i].Err != nil {
				t.Fatal(calls[i].Err)
			}
			n, told := l.once.Max-calls[i].Charges[0].Remaining, l.singles[id].outcome
			if n > 1 || n == 0 && told == toldAdmitted || n == 1 && told == toldDenied {
				t.Errorf("a call was charged %d times, and its caller told: %s (%s)", n, told, l.singles[id].told)
			}
			executed[told] += n
		}
	}
	if charged := executed[toldRecalled]; charged > recalled {
		t.Errorf("%d calls were charged and denied by an earlier denial, of %d that got no answer", charged, recalled)
	}
	t.Logf("%d calls, %d admitted; of those with a key of their own %d were charged that were told so, and %d that were not",
		l.calls.Load(), l.admitted.Load(), executed[toldAdmitted], executed[toldNothing])
}

// recalledForLost returns how many calls at most were denied by an earlier denial
// because their answer was lost: the store has counted them as failures, and their
// callers got no error.
func (l *tripLoad) recalledForLost() int64 {
	n := -l.lost.Load()
	for class, calls := range l.store.Failures() {
		switch class {
		case runtime.ClassBreakerOpen, runtime.ClassCrowded, runtime.ClassDial: // not charged
		default:
			n += calls
		}
	}
	return n
}

// check looks for an order in which what the callers were told can have
// happened: every event of the limit was one caller's, and no caller came
// before one that had its answer already. Some calls that got no answer were
// denied by an earlier denial.
func (k *loadKey) check(t *testing.T, store *runtime.RedisStore, recalled int64) {
	t.Helper()
	calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: k.rule, Key: []byte(k.key), Max: k.rule.Max, Cost: 1}}}}
	must(t, store, peek, calls)
	used := k.rule.Max - calls[0].Charges[0].Remaining
	slices.SortFunc(k.admitted, func(a, b admission) int { return cmp.Compare(a.from, b.from) })
	var told, last int64
	var latest time.Time // start of those before
	for _, a := range k.admitted {
		told += a.to - a.from
		if a.from < last {
			t.Errorf("%s: two callers were both told that they had event %d", k.key, a.from)
		}
		if latest.After(a.end) {
			t.Errorf("%s: a caller was let in before one that was through when it came", k.key)
		}
		if a.start.After(latest) {
			latest = a.start
		}
		last = a.to
	}
	if used > k.rule.Max || told > used || used > told+k.unknown+2*recalled || last > used {
		t.Errorf("%s: %d charged of %d, callers know of %d, and do not know of %d", k.key, used, k.rule.Max, told, k.unknown)
	}
	if k.rule.Max < 1000 && (k.denied == 0 || used+1 < k.rule.Max) {
		t.Errorf("%s: %d denied with %d of %d charged", k.key, k.denied, used, k.rule.Max)
	}
	t.Logf("%s: %d admitted, %d denied, %d charged, %d unknown", k.key, len(k.admitted), k.denied, used, k.unknown)
}
