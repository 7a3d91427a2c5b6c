package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// calls makes n calls of one kind, one after the other.
func (p *process) calls(ctx context.Context, round uint32, n int) {
	site, number := rand.IntN(len(p.sites)), kindLog+rand.IntN(len(kinds)-kindLog)
	for kinds[number].history != nil && !p.Exact || kinds[number].pair && site != 0 || number == kindPartner {
		number = kindLog + rand.IntN(len(kinds)-kindLog)
	}
	for range n {
		e := entry{
			Site: uint8(site), Kind: uint8(number), Process: p.Process, Round: round,
			Cost: uint8(1 + rand.Int64N(kinds[number].cost)),
		}
		if kinds[number].history != nil {
			p.callExactly(ctx, &e)
		} else {
			p.call(ctx, &e)
		}
	}
}

// keyOf returns the key of a call. Each round has keys of its own, so that it can be
// judged without the ones before.
func (e *entry) keyOf() *runtime.Key {
	return runtime.NewKey().AddInt(int64(e.Round)).AddInt(int64(e.Key))
}

// call makes a call by the limiter, as a program would.
func (p *process) call(ctx context.Context, e *entry) {
	k := &kinds[e.Kind]
	if k.fresh {
		e.Key = rand.Uint32()
	}
	limits := []runtime.Limit{k.rule.Limit(e.keyOf()).WithCost(int64(e.Cost))}
	if k.pair {
		limits = append(limits, kinds[kindPartner].rule.Limit(e.keyOf()).WithCost(int64(e.Cost)))
	}
	limiter := p.sites[e.Site].limiter
	e.Begin = time.Now().UnixMicro()
	d, err := limiter.Take(ctx, limits...)
	e.decided(&d, err)
	e.Kept = e.Cost
	if (k.refund || k.settle) && e.Fate == admitted && rand.IntN(2) == 0 {
		if e.Kept = 0; k.settle {
			e.Kept = 1
		}
		if limiter.Settle(ctx, d, int64(e.Kept)) == nil {
			e.Settled = time.Now().UnixMicro()
		}
	}
	if !k.pair {
		p.tell(e)
		return
	}
	// A denial is about the limit that it names, all else about both.
	for _, kind := range []uint8{kindPair, kindPartner} {
		if e.Kind = kind; e.Fate != denied || d.Rule == kinds[kind].rule.Name {
			p.tell(e)
		}
	}
}

// decided notes what the limiter has answered.
func (e *entry) decided(d *runtime.Decision, err error) {
	e.End = time.Now().UnixMicro()
	e.Source, e.Limit, e.Blocked = uint8(d.Source), d.Limit, d.Blocked
	e.Recalled = d.Source == runtime.SourceRecalled
	e.Wait = int64(d.RetryAfter)
	switch {
	case err == nil:
		e.Fate = admitted
	case errors.Is(err, runtime.ErrLimited):
		e.Fate = denied
	case errors.Is(err, runtime.ErrUnavailable):
		e.Fate = unavailable
	default:
		e.Fate = strange
	}
}

// callExactly makes a call by the store, which says when the charge was.
func (p *process) callExactly(ctx context.Context, e *entry) {
	e.What = exactly
	rule := &kinds[e.Kind].rule
	key := append([]byte("soak:"+rule.Name+":"), e.keyOf().String()...)
	calls := []rawstore.Call{{Charges: []rawstore.Charge{{Rule: rule, Key: key, Max: rule.Max, Cost: int64(e.Cost)}}}}
	e.Begin = time.Now().UnixMicro()
	err := rawstore.On(p.sites[e.Site].store).Take(ctx, calls)
	e.End = time.Now().UnixMicro()
	charge := &calls[0].Charges[0]
	e.At, e.Wait, e.Left, e.Recalled = charge.At, int64(charge.RetryAfter), charge.Remaining, charge.Recalled
	switch {
	case err != nil || calls[0].Err != nil:
		e.Fate = unavailable
	case !charge.Allowed:
		e.Fate = denied
	}
	p.tell(e)
}

// hold makes calls that hold permits while they run, until the end.
func (p *process) hold(ctx context.Context, round uint32, end time.Time) {
	k := &kinds[kindPermits]
	for ctx.Err() == nil {
		// A call in eight lasts for seconds.
		last := rand.N(200 * time.Millisecond)
		if rand.IntN(8) == 0 {
			last = rand.N(3 * time.Second)
		}
		pause := rand.N(time.Second)
		if time.Now().Add(pause + last).After(end) {
			return
		}
		sleepUntil(ctx, time.Now().Add(pause))
		e := entry{What: held, Site: uint8(rand.IntN(len(p.sites))), Kind: kindPermits, Process: p.Process, Round: round,
			Cost: uint8(1 + rand.Int64N(k.cost))}
		limiter, limit := p.sites[e.Site].limiter, k.rule.Limit(e.keyOf()).WithCost(int64(e.Cost))
		e.Begin = time.Now().UnixMicro()
		d, err := limiter.Take(ctx, limit)
		e.decided(&d, err)
		if e.Fate == admitted {
			sleepUntil(ctx, time.Now().Add(last))
			e.At = time.Now().UnixMicro()
			if limiter.Settle(ctx, d) == nil {
				e.Settled = time.Now().UnixMicro()
			}
		}
		p.tell(&e)
	}
}
