package crossing

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/internal/replay"
	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/raterecord"
)

// recorded is a world in memory whose limiters are recorded.
type recorded struct {
	*inMemory
	recorder *raterecord.Recorder
}

func (r recorded) options() []runtime.Option {
	return []runtime.Option{runtime.WithObserver(r.recorder.Observer())}
}

var recordedScope = &scope{window: memoryScope.window, steps: memoryScope.steps, jumps: true, faults: memoryScope.faults}

// TestReplay holds what is decided of a record, by the rules in it, against what was decided when
// it was made, call by call.
func TestReplay(t *testing.T) {
	try(t, effort.ChooseMore(60, effort.Few(600)), 20_000)
	calls := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		p := recordedScope.draw(t)
		lapses := slices.ContainsFunc(p.Rules, func(r *runtime.Rule) bool { return r.Algorithm == runtime.Concurrency || r.Reserve > 0 })
		p.Closes = p.Closes && !lapses // no record says when a process has ended, and renews nothing any more
		p.Steps = slices.DeleteFunc(p.Steps, func(s step) bool {
			switch do := s.Do.(type) {
			case reset, hold, trouble: // which no record has
				return true
			case jump: // what lapses is renewed by another clock
				return lapses
			case call: // no record says when it joined a queue, if other limits were charged at its turn
				return !do.Each && len(do.Uses) > 1 && slices.ContainsFunc(do.Uses, func(u use) bool {
					r := p.Rules[u.Rule]
					return r.Algorithm == runtime.LeakyBucket && r.Wait > 0 && r.Mode.Refuses()
				})
			}
			return false
		})
		// A call that waits is tried several times, and a record has its last try. An earlier one at
		// a lower max, or in a longer window, has the store keep the key for longer.
		if slices.ContainsFunc(p.Rules, func(r *runtime.Rule) bool { return r.Wait > 0 }) {
			for i := range p.Steps {
				p.Steps[i].Do = asDeclared(p.Steps[i].Do)
			}
		}
		// Calls that are decided in one moment may come into the record in another order than the
		// store had. It does not happen again and again.
		for again := 7; ; again-- {
			h, result := replayed(t, p)
			if result == nil {
				return
			}
			if result.Unequal == 0 {
				calls += result.Equal
				return
			}
			if again == 0 {
				t.Fatalf("%d of %d calls are decided otherwise\n%v", result.Unequal, result.Equal+result.Unequal, h)
			}
		}
	})
	t.Logf("%d calls", calls)
	if calls < 500 {
		t.Errorf("%d calls say little", calls)
	}
}

// asDeclared returns a step that does not change the numbers of rules.
func asDeclared(do action) action {
	switch do := do.(type) {
	case call:
		do.Uses = slices.Clone(do.Uses)
		for i := range do.Uses {
			do.Uses[i].Max = 0
		}
		return do
	case change:
		do.Rules = nil
		return do
	}
	return do
}

// replayed runs a program, and replays its record. It returns no result if that has no call.
func replayed(t *rapid.T, p *program) (h *history, result *replay.Result) {
	var out bytes.Buffer
	rapid.SyncTest(t, func(t *rapid.T) {
		w := recorded{inMemory: newMemory(p)}
		var err error
		w.recorder, err = raterecord.To(&out, raterecord.WithSecret([]byte("0123456789abcdef")), raterecord.WithClock(w.clock))
		if err != nil {
			t.Fatal(err)
		}
		h = run(p, recordedScope, w)
		if err := w.recorder.Close(); err != nil {
			t.Fatal(err)
		}
	})
	same := func(s record.RuleState, max int64) (*runtime.Rule, int64, bool) { return s.Rule, max, true }
	records, err := replay.Open(bytes.NewReader(out.Bytes()))
	if err == replay.ErrEmpty {
		return h, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if result, err = records.Run(same); err != nil {
		t.Fatal(err)
	}
	return h, result
}
