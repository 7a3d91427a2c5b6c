package replay

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterecord"
	"github.com/rategen/rategen/runtime/rule"
)

// recorded returns the record of what do does with a limiter.
func recorded(t *testing.T, do func(*runtime.Limiter), opts ...runtime.Option) *bytes.Reader {
	return recordedBy(t, nil, do, opts...)
}

// recordedBy is recorded, by a recorder with options.
func recordedBy(t *testing.T, by []raterecord.Option, do func(*runtime.Limiter), opts ...runtime.Option) *bytes.Reader {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		r, err := raterecord.To(&out, by...)
		limittest.OK(t, err)
		l := runtime.New(runtime.NewMemoryStore(), append(opts, runtime.WithObserver(r.Observer()), limittest.Quiet)...)
		do(l)
		_ = l.Close()
		limittest.OK(t, r.Close())
	})
	return bytes.NewReader(out.Bytes())
}

// opened returns the records of a file.
func opened(t *testing.T, file io.ReaderAt) *Records {
	t.Helper()
	records, err := Open(file)
	limittest.OK(t, err)
	return records
}

// changed replays by rules that a function changes.
func changed(t *testing.T, file io.ReaderAt, change func(*runtime.Rule)) *Rule {
	t.Helper()
	result, err := opened(t, file).Run(func(s record.RuleState, _ int64) (*runtime.Rule, int64, bool) {
		r := *s.Rule
		change(&r)
		return &r, r.Max, true
	})
	limittest.OK(t, err)
	if result.Unequal > 0 || len(result.Rules) != 1 {
		t.Fatalf("%+v", result)
	}
	return result.Rules[0]
}

// Twenty calls come at once, by limits that let them wait and by one that does not.
func TestWaits(t *testing.T) {
	for _, algorithm := range []runtime.Algorithm{runtime.SlidingLog, runtime.TokenBucket, runtime.LeakyBucket} {
		rule := &runtime.Rule{Name: "wait", Window: time.Second, Max: 10, Wait: 5 * time.Second, Algorithm: algorithm}
		file := recorded(t, func(l *runtime.Limiter) {
			for range 20 {
				go func() { _, _ = l.Take(context.Background(), rule.Limit(nil)) }()
			}
			time.Sleep(10 * time.Second)
		})
		same := changed(t, file, func(*runtime.Rule) {})
		if same.Before != same.After || same.Calls != 20 || same.Before.Admitted != 20 || same.Before.Delayed < 10 ||
			same.Before.Longest < 900*time.Millisecond || same.Before.Longest > 2*time.Second {
			t.Errorf("%v, as it was: %+v, then %+v", algorithm, same.Before, same.After)
		}
		more := changed(t, file, func(r *runtime.Rule) { r.Max = 1000 })
		if more.After.Admitted != 20 || more.After.Longest > 20*time.Millisecond {
			t.Errorf("%v, more: %+v", algorithm, more.After)
		}
		none := changed(t, file, func(r *runtime.Rule) { r.Wait = 0 })
		if none.After.Refused != 10 || none.After.Delayed != 0 {
			t.Errorf("%v, without a wait: %+v", algorithm, none.After)
		}
	}
}

// Twenty calls come at once, and leave a queue one after the other. Limits beside it count them then.
// No record says when they joined the queue, and the result says so.
func TestQueueBesideOthers(t *testing.T) {
	queue := &runtime.Rule{Name: "queue", Window: time.Second, Max: 10, Wait: 5 * time.Second, Algorithm: runtime.LeakyBucket}
	for _, other := range []*runtime.Rule{
		{Name: "other", Window: 300 * time.Millisecond, Max: 5},
		{Name: "other", Window: 10 * time.Second, Max: 1, Algorithm: runtime.Concurrency},
	} {
		file := recorded(t, func(l *runtime.Limiter) {
			for range 20 {
				go func() {
					if d, err := l.Take(context.Background(), queue.Limit(nil), other.Limit(nil)); err == nil {
						time.Sleep(50 * time.Millisecond)
						_ = l.Settle(context.Background(), d)
					}
				}()
			}
			time.Sleep(10 * time.Second)
		})
		result, err := opened(t, file).Run(func(s record.RuleState, max int64) (*runtime.Rule, int64, bool) {
			slower := *s.Rule
			if slower.Name == "queue" {
				slower.Max, max = 5, 5
			}
			return &slower, max, true
		})
		limittest.OK(t, err)
		if result.Calls != 20 || result.Equal != 1 || result.Unequal != 0 || !strings.Contains(result.Notes[1], "19 calls waited in a queue beside other limits") {
			t.Errorf("%v: %d calls, %d equal, %d unequal, %q", other.Algorithm, result.Calls, result.Equal, result.Unequal, result.Notes)
		}
		for _, r := range result.Rules {
			if r.Before.Admitted != 20 || r.Before.Longest.Round(time.Millisecond) != 1900*time.Millisecond ||
				r.After.Admitted != 20 || r.After.Longest.Round(time.Millisecond) != 3800*time.Millisecond {
				t.Errorf("%v: %+v, then %+v", other.Algorithm, r.Before, r.After)
			}
		}
	}
}

// Calls that are refused permits hold them for as long as others did where there are more.
func TestPermits(t *testing.T) {
	rule := &runtime.Rule{Name: "permits", Window: 10 * time.Second, Max: 2, Algorithm: runtime.Concurrency}
	file := recorded(t, func(l *runtime.Limiter) {
		for range 30 {
			go func() {
				if d, err := l.Take(context.Background(), rule.Limit(nil)); err == nil {
					time.Sleep(29 * time.Second) // almost three windows: renewed meanwhile
					_ = l.Settle(context.Background(), d)
				}
			}()
			time.Sleep(5 * time.Second)
		}
		time.Sleep(time.Minute)
	})
	if same := changed(t, file, func(*runtime.Rule) {}); same.Before != same.After || same.Before.Refused == 0 {
		t.Errorf("%+v, then %+v", same.Before, same.After)
	}
	// Six calls run at a time, if each runs for 29 seconds and one comes every 5. None comes in the
	// moment in which another ends: nobody knows which was first.
	if enough := changed(t, file, func(r *runtime.Rule) { r.Max = 7 }); enough.After.Refused != 0 {
		t.Errorf("%+v", enough.After)
	}
	if few := changed(t, file, func(r *runtime.Rule) { r.Max = 1 }); few.After.Admitted < 4 || few.After.Admitted > 6 {
		t.Errorf("%+v", few.After)
	}
}

// Of calls that nobody settled no record says how long they took.
func TestUnknownDuration(t *testing.T) {
	rule := &runtime.Rule{Name: "rate", Window: time.Minute, Max: 5}
	file := recorded(t, func(l *runtime.Limiter) { _, _ = l.Take(t.Context(), rule.Limit(nil)) })
	_, err := opened(t, file).Run(func(s record.RuleState, max int64) (*runtime.Rule, int64, bool) {
		permits := *s.Rule
		permits.Algorithm = runtime.Concurrency
		return &permits, max, true
	})
	if err == nil || !strings.Contains(err.Error(), "does not say how long calls took") {
		t.Error(err)
	}
}

// Files without a call say which of three things they are.
func TestEmpty(t *testing.T) {
	rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	var newer bytes.Buffer
	_, _ = newer.ReadFrom(recorded(t, func(l *runtime.Limiter) { _, _ = l.Take(t.Context(), rule.Limit(nil)) }))
	block := bytes.Replace(newer.Bytes(), []byte(`"version":1`), []byte(`"version":2`), 1)
	binary.LittleEndian.PutUint32(block[8:], crc32.Checksum(block[12:], crc32.MakeTable(crc32.Castagnoli)))
	for name, test := range map[string]struct {
		file []byte
		want error
	}{"nothing": {nil, ErrEmpty}, "another file": {[]byte("a log of something else"), ErrNone}, "a newer one": {block, ErrNewer}} {
		if _, err := Open(bytes.NewReader(test.file)); err != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A rule whose calls no other rule limits is replayed alone, and one that shares calls or keys is not. Both
// have the result that a replay of all calls has. A rule is told by the terms that most of its calls had.
func TestParts(t *testing.T) {
	rules := []*runtime.Rule{{Name: "alone", Window: time.Second, Max: 3}, {Name: "a", Window: time.Second, Max: 5}, {Name: "b", Prefix: "same:", Window: time.Second, Max: 8}, {Name: "c", Prefix: "same:", Window: time.Second, Max: 8}}
	file := recorded(t, func(l *runtime.Limiter) {
		for i := range 2000 {
			limits := []runtime.Limit{rules[i%4].Limit(nil)}
			if i%4 == 1 {
				limits = append(limits, rules[2].Limit(nil))
			}
			_, _ = l.Take(t.Context(), limits...)
			time.Sleep(50 * time.Millisecond)
		}
	})
	records := opened(t, file)
	for name, events := range map[string]int{"alone": 500, "a": 1500, "c": 1500} {
		plan := NewPlan()
		plan.Sets[name], plan.Max[name] = append(plan.Sets[name], func(r *runtime.Rule) { r.Max = 2 }), true
		part, err := records.Select(name)
		if err != nil || len(part.kept) != events {
			t.Fatalf("%s: %d events, %v", name, len(part.kept), err)
		}
		whole, err := records.Run(plan.Change)
		limittest.OK(t, err)
		of, err := part.Run(plan.Change)
		limittest.OK(t, err)
		for _, r := range of.Rules {
			i := slices.IndexFunc(whole.Rules, func(w *Rule) bool { return w.Name == r.Name })
			if w := whole.Rules[i]; w.Before != r.Before || w.After != r.After || r.Name == name && r.After.Refused == 0 {
				t.Errorf("%s of %s: %+v, then %+v; of all %+v, then %+v", r.Name, name, r.Before, r.After, w.Before, w.After)
			}
		}
	}
	if _, err := records.Select("alon"); err == nil || !strings.Contains(err.Error(), `did you mean "alone"`) {
		t.Error(err)
	}
}

// An override that some calls had does not stand for the terms of a rule, and is noted. What calls would have
// cost that were refused nobody knows.
func TestNotes(t *testing.T) {
	r := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	var says atomic.Pointer[runtime.Overrides]
	says.Store(new(runtime.Overrides))
	source := runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) { return *says.Load(), nil })
	file := recorded(t, func(l *runtime.Limiter) {
		for i := range 100 {
			if i == 90 {
				says.Store(&runtime.Overrides{Rules: map[string]rule.Override{"r": {Max: new(int64(1))}}})
			}
			if d, err := l.Take(t.Context(), r.Limit(nil)); err == nil {
				_ = l.Settle(t.Context(), d, 2)
			}
			time.Sleep(3 * time.Second)
		}
	}, runtime.WithOverrides(source, time.Second))
	plan := NewPlan()
	plan.Sets["r"], plan.Max["r"] = append(plan.Sets["r"], func(r *runtime.Rule) { r.Max = 1000 }), true
	result, err := opened(t, file).Run(plan.Change)
	limittest.OK(t, err)
	notes := strings.Join(result.Notes, "\n")
	if of := result.Rules[0]; !strings.HasPrefix(of.Was, "5 per") || !strings.Contains(notes, "Of 100 calls of r 9 had other terms for a time: 1 per 1m0s") || !strings.Contains(notes, "nobody knows their real cost") ||
		strings.Contains(notes, "A clock was set back") {
		t.Errorf("%s\n%s", of.Was, notes)
	}
}

// A clock that is set back is told of, and one that is not is not, however long calls take.
func TestClockSteps(t *testing.T) {
	rule := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	for back, want := range map[time.Duration]int{0: 0, 50 * time.Millisecond: 0, time.Hour: 1} {
		var behind atomic.Int64
		clock := raterecord.WithClock(func() time.Time { return time.Now().Add(-time.Duration(behind.Load())).Round(0) })
		records := opened(t, recordedBy(t, []raterecord.Option{clock}, func(l *runtime.Limiter) {
			for range 3 {
				_, _ = l.Take(t.Context(), rule.Limit(nil))
				time.Sleep(10 * time.Second)
				behind.Store(int64(back))
			}
		}))
		if records.files.Damage.Steps != want {
			t.Errorf("%v back: %+v", back, records.files.Damage)
		}
	}
}

// A record of few bytes that charges many events does not take all memory.
func TestMemoryIsBounded(t *testing.T) {
	rule := &runtime.Rule{Name: "many", Window: time.Hour, Max: 1_000_000}
	file := recorded(t, func(l *runtime.Limiter) {
		for range 2 * checkedEvery {
			_, _ = l.Take(t.Context(), rule.Limit(nil).WithCost(100))
			time.Sleep(time.Millisecond)
		}
	})
	records := opened(t, file)
	same := func(s record.RuleState, max int64) (*runtime.Rule, int64, bool) { return s.Rule, max, true }
	if _, err := records.Run(same); err != nil {
		t.Error(err)
	}
	records.maxHeap = 3 << 20
	if _, err := records.Run(same); err == nil || !strings.Contains(err.Error(), "more than 3 MiB of memory") {
		t.Errorf("%d bytes are replayed: %v", file.Size(), err)
	}
}

// A loud tenant and a quiet one share a bucket, and some calls cost less than they were charged. A record
// says of whom each call is, also of those that one moment has, so that it decides as the limiter did.
func TestDivided(t *testing.T) {
	divided := runtime.Rule{Name: "divided", Window: time.Second, Max: 100, Burst: 20, Algorithm: runtime.TokenBucket, Headroom: 5}
	whole := divided
	whole.Headroom = 0
	calls := func(r *runtime.Rule) *bytes.Reader {
		return recorded(t, func(l *runtime.Limiter) {
			for i := range 2000 {
				take := func(tenant string, weight int64) {
					limit := r.Limit(nil).WithCost(2)
					if r.Headroom != 0 {
						limit = limit.WithShare(runtime.NewKey().AddString(tenant), weight)
					}
					if d, err := l.Take(t.Context(), limit); err == nil && i%10 == 0 {
						_ = l.Settle(t.Context(), d, 1)
					}
				}
				take("loud", 1)
				take("heavy", 2)
				if i%50 == 0 {
					take("quiet", 1)
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	file := calls(&divided)
	same := changed(t, file, func(*runtime.Rule) {})
	if same.Before != same.After || same.Callers != 3 || same.HitNow != 2 {
		t.Errorf("as it was: %+v, then %+v, %d of %d tenants refused", same.Before, same.After, same.HitNow, same.Callers)
	}
	if undivided := changed(t, file, func(r *runtime.Rule) { r.Headroom = 0 }); undivided.NewlyHit != 1 {
		t.Errorf("undivided: %d tenants newly refused, want the quiet one", undivided.NewlyHit)
	}
	records, err := Open(calls(&whole))
	limittest.OK(t, err)
	_, err = records.Run(func(record.RuleState, int64) (*runtime.Rule, int64, bool) { return &divided, divided.Max, true })
	if err == nil || !strings.Contains(err.Error(), "of which share") {
		t.Errorf("newly divided: %v", err)
	}
	if records, err = Open(file); err != nil {
		t.Fatal(err)
	}
	proposals, err := records.Propose(t.Context(), "divided", NewPlan(), false)
	if err != nil || len(proposals.All) == 0 {
		t.Errorf("proposals: %+v, %v", proposals, err)
	}
}
