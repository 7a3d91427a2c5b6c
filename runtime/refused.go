package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/runtime/internal/callers"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// maxKeepRefusals bounds what refusals take in Redis.
const maxKeepRefusals = 7 * 24 * time.Hour

// minSecret is how many bytes a secret has at least: others may try short ones on what they read.
const minSecret = 16

// WithRefusals sets for how long Redis keeps whom the limiter has refused in each minute: the 100 callers
// that were refused most, and the number of the others; with 0 no key is told, neither of these nor of those that
// Redis is asked about most. The default is 24 hours. Keys are there as they are in Redis anyway or, with
// a secret, as keyed hashes: who knows the secret finds a caller, and nobody reads one. All limiters
// of a namespace need the same. It panics if kept is below 0 or above 7 days, or not of whole minutes,
// and if a secret that is not nil has less than 16 bytes: it may come from a variable that is not set.
func WithRefusals(kept time.Duration, secret []byte) Option {
	if kept < 0 || kept > maxKeepRefusals || kept%time.Minute != 0 {
		panic(fmt.Sprintf("runtime: WithRefusals(%v): say whole minutes, %v at most, or 0 to keep none", kept,
			maxKeepRefusals))
	}
	if secret != nil && len(secret) < minSecret {
		panic(fmt.Sprintf("runtime: WithRefusals: a secret has %d bytes at least, and this one %d: nil hides no key", minSecret, len(secret)))
	}
	return func(l *Limiter) {
		l.refused.set, l.refused.kept, l.refused.secret = true, kept, slices.Clone(secret)
	}
}

func (s lentStore) RefusedMinutes(ctx context.Context, namespace string, since time.Time) ([]bridge.RefusedMinute, error) {
	found, err := server.Refused(ctx, s.client, namespace, since)
	if err != nil {
		return nil, fmt.Errorf("read what was refused: %w", err)
	}
	all := make([]bridge.RefusedMinute, len(found))
	for i, m := range found {
		all[i] = bridge.RefusedMinute(m)
	}
	return all, nil
}

func (l lent) RefusedMinutes(ctx context.Context, since time.Time) ([]bridge.RefusedMinute, error) {
	if l.redis == nil {
		return nil, nil
	}
	return lentStore{l.redis}.RefusedMinutes(ctx, l.plans.Namespace, since)
}

func (l lent) ToldKey(key string) string { return l.refused.hidden(key) }

// refused counts which callers a limiter refuses, and all its calls, for its reports.
type refused struct {
	set     bool // kept was
	kept    time.Duration
	secret  []byte
	counter *callers.Counter // nil: no keys are told
	calls   *calls           // nil: nothing is counted
	taken   time.Time        // when calls last were
}

// begin counts from now on.
func (r *refused) begin() {
	if !r.set {
		r.kept = bridge.KeepRefusals
	}
	if r.kept > 0 {
		r.counter = callers.NewCounter()
	}
	r.calls, r.taken = new(calls), time.Now()
	r.calls.keys.Store(callers.NewSketch())
}

// A process tells of so many keys that Redis was asked about, and of so many whose permits it holds.
const (
	mostAsked = 10
	mostHeld  = 50
)

// An outcome is what was decided about a limit of a call.
type outcome uint8

// The outcomes, and asked, of which Redis was asked about.
const (
	outcomeAdmitted outcome = iota
	outcomeRefused
	outcomeShadow
	outcomeUndecided
	outcomeAsked
	outcomes
)

// The first exact calls of an outcome since the last report are counted one by one. Of later calls one
// in sampled is counted, for so many.
const (
	exact   = 1_024
	sampled = 64
)

// calls are what was decided since it was told, and the keys that Redis was asked about, one of sampled.
type calls struct {
	n    [outcomes]atomic.Int64
	keys atomic.Pointer[callers.Sketch]
}

// takeCalls returns the calls since the last time, and what is held.
func (r *refused) takeCalls(permits *ledger.Permits) bridge.ProcessCalls {
	told, now := bridge.ProcessCalls{}, time.Now()
	told.Seconds, r.taken = now.Sub(r.taken).Seconds(), now
	for i := range told.Decided {
		told.Decided[i] = r.calls.n[i].Swap(0)
	}
	told.Asked = r.calls.n[outcomeAsked].Swap(0)
	most := r.calls.keys.Swap(callers.NewSketch()).All()
	// Those that are equal are in no order, so that all processes together tell each of them.
	slices.SortStableFunc(most, func(a, b callers.Caller) int { return cmp.Compare(b.Count-b.Over, a.Count-a.Over) })
	most = most[:min(len(most), mostAsked)]
	if r.counter == nil {
		return told
	}
	for _, c := range most {
		if sure := c.Count - c.Over; sure > 0 {
			told.Keys = append(told.Keys, bridge.KeyCalls{Rule: c.Rule, Key: r.hidden(c.Key), Count: int64(sure)})
		}
	}
	for _, h := range permits.Oldest(mostHeld) {
		told.Permits = append(told.Permits, bridge.KeyPermits{Rule: h.Plan.Name, Key: r.hidden(string(h.Plan.Parts([]byte(h.Key)))), Permits: h.Permits, Since: time.UnixMicro(h.Since).UTC()})
	}
	return told
}

// take returns what was refused since the last time.
func (r *refused) take() []callers.Caller {
	if r.counter == nil {
		return nil
	}
	return r.counter.Take()
}

// hidden returns a key as Redis is told it.
func (r *refused) hidden(key string) string {
	if len(r.secret) == 0 {
		return key
	}
	return spec.HiddenKey(r.secret, key)
}

// count counts the keys of all limits that had no room for a call: of those in shadow mode also if it was
// not refused.
func (r *refused) count(charges []decide.Charge, tries []terms.Charge, admitted bool) {
	for i := range tries {
		p, most := charges[i].Plan, int64(-1)
		if tries[i].Allowed || admitted && !tries[i].Shadow {
			continue
		}
		if tries[i].Shadow {
			most = callers.Shadowed
		} else if p.Declared.Max == 0 {
			most = p.Max
		}
		if parts := p.Parts(charges[i].Key); parts != nil {
			r.counter.Add(p.Name, parts, most)
		}
	}
}
