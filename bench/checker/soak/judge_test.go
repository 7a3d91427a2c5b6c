package main

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// simulate returns what three processes tell of a round over stores in memory, in
// fake time.
func simulate(t *testing.T) []entry {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		stores := []runtime.Store{delayed(), delayed()}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for number := range uint16(3) {
			p := &process{orders: orders{Process: number, Rate: 300, Exact: true}, out: lockedWriter{&mu, &out}}
			for _, store := range stores {
				p.sites = append(p.sites, &site{store: store, limiter: runtime.New(store, runtime.WithNamespace("soak"), runtime.WithLogger(slog.New(slog.DiscardHandler)))})
			}
			end := time.Now().Add(20 * time.Second)
			for range callers {
				wait.Go(func() {
					for time.Now().Before(end) {
						p.calls(t.Context(), 1, 1+rand.IntN(7))
						time.Sleep(rand.N(100 * time.Millisecond))
					}
				})
			}
			wait.Go(func() {
				p.hold(t.Context(), 1, end)
				for _, s := range p.sites {
					_ = s.limiter.Close()
				}
			})
		}
		wait.Wait()
	})
	var entries []entry
	if err := readEntries(&out, func(e entry) { entries = append(entries, e) }); err != nil {
		t.Fatal(err)
	}
	return entries
}

// delayed returns a store that takes some time to ask and some to answer.
func delayed() runtime.Store {
	return rawstore.Around{Store: runtime.NewMemoryStore(), By: func(take func() error) error {
		time.Sleep(1 + rand.N(200*time.Microsecond))
		defer func() { time.Sleep(1 + rand.N(200*time.Microsecond)) }()
		return take()
	}}
}

type lockedWriter struct {
	mu  *sync.Mutex
	out *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// TestJudge wants nothing to be found in decisions that are right, and each kind of
// fault in decisions that are not.
func TestJudge(t *testing.T) {
	good := simulate(t)
	v := judgeRound(slices.Clone(good), &circumstance{})
	if v.faults() > 0 || v.Exact == 0 || v.Bounds == 0 || v.Undecided > 0 || v.Exact+v.Bounds != v.Calls {
		t.Fatalf("%+v", v)
	}
	denials := map[uint8]int{}
	for _, e := range good {
		if e.Fate == denied {
			denials[e.Kind]++
		}
	}
	for i := range kinds {
		// What a partner is charged its pair is too, which comes first.
		never := kinds[i].fresh || kinds[i].rule.Mode == runtime.ModeShadow || i == kindPartner
		if (denials[uint8(i)] == 0) != never {
			t.Errorf("%s: %d denials", kinds[i].rule.Name, denials[uint8(i)])
		}
		if never {
			continue
		}
		t.Run(kinds[i].rule.Name, func(t *testing.T) {
			for name, change := range map[string]func(*entry){
				"denials are admitted": func(e *entry) {
					if e.Fate == denied {
						e.Fate, e.Kept, e.Wait = admitted, e.Cost, 0
						e.At = e.End
						if e.What == held {
							e.At = e.End + 200_000
						}
					}
				},
				"denials before anything is used": func(e *entry) {
					if e.Fate == denied {
						e.Begin, e.End, e.Blocked = e.Begin-1e9, e.End-1e9, false
					}
				},
				"no time to come back": func(e *entry) {
					if e.Fate == denied {
						e.Wait = 0
					}
				},
			} {
				bad := slices.Clone(good)
				for j := range bad {
					if bad[j].Kind == uint8(i) {
						change(&bad[j])
					}
				}
				v := judgeRound(bad, &circumstance{})
				found := map[string]int{
					"denials are admitted":            v.Over + v.Wrong, // the exact judge finds the number that is left wrong first
					"denials before anything is used": v.Spurious,
					"no time to come back":            v.Wrong,
				}[name]
				if found == 0 {
					t.Errorf("%s: not found: %+v", name, v)
				}
			}
		})
	}
}

// TestJudgeBears wants what nobody can know not to count as a fault: calls without an
// answer, processes that were killed, and counts that were lost.
func TestJudgeBears(t *testing.T) {
	call := func(at int64, fate fate, cost uint8) entry {
		return entry{Kind: kindLog, Begin: at, End: at, Fate: fate, Source: uint8(runtime.SourceStore), Cost: cost, Kept: cost, Wait: 1, Limit: most}
	}
	var full []entry
	for i := range int64(most) {
		full = append(full, call(1000+i, admitted, 1))
	}
	over := append(slices.Clone(full), call(2000, admitted, 1))
	if v := judgeRound(over, &circumstance{}); v.Over != 1 {
		t.Errorf("one too many: %+v", v)
	}
	if v := judgeRound(over, &circumstance{lost: [2]int64{1, 0}}); v.faults() != 0 {
		t.Errorf("counts were lost: %+v", v)
	}
	if v := judgeRound(over, &circumstance{lost: [2]int64{0, 1}}); v.Over != 1 {
		t.Errorf("counts of another Redis were lost: %+v", v)
	}
	unknown := append(slices.Clone(full[:most-2]), call(2000, unavailable, 2), call(3000, denied, 1))
	if v := judgeRound(unknown, &circumstance{}); v.faults() != 0 || v.Undecided != 1 {
		t.Errorf("a call may be charged: %+v", v)
	}
	spurious := append(slices.Clone(full[:most-2]), call(3000, denied, 1))
	if v := judgeRound(spurious, &circumstance{}); v.Spurious != 1 {
		t.Errorf("there is room: %+v", v)
	}
	if v := judgeRound(spurious, &circumstance{killed: []int64{2500}}); v.faults() != 0 {
		t.Errorf("a process was killed that may have been charged: %+v", v)
	}
	late := append(slices.Clone(full[:most-2]), call(2000, unavailable, 2), call(4e6, admitted, most-2), call(5e6, denied, 1))
	for i := range late[:most-1] {
		late[i].Begin, late[i].End = late[i].Begin-3e6, late[i].End-3e6
	}
	if v := judgeRound(late, &circumstance{}); v.Spurious != 1 {
		t.Errorf("no request is held up so long: %+v", v)
	}
	if v := judgeRound(late, &circumstance{until: [2]int64{3e6, 0}}); v.faults() != 0 {
		t.Errorf("a request was held up: %+v", v)
	}
	changed := call(10e6, admitted, 1)
	changed.Kind = kindChanged
	if v := judgeRound([]entry{changed}, &circumstance{max: 5, changed: 1}); v.Wrong != 1 {
		t.Errorf("an override without effect: %+v", v)
	}
}
