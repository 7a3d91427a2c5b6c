package runtime

import (
	"context"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rediswire"
	"github.com/rategen/rategen/runtime/rule"
)

func init() {
	bridge.LimiterOf = func(limiter any) bridge.Limiter { return lent{limiter.(*Limiter)} }
	bridge.StoreOf = func(store any) bridge.RedisStore { return lentStore{store.(*RedisStore)} }
	bridge.EngineOf = func(store any) any { return store.(Store).backend().Store }
	bridge.NewStore = func(engine, behind any, shared bool) any {
		s := replaced{Store: engine.(terms.Store), leases: shared}
		if b, ok := behind.(Store); ok {
			s.memory, s.redis = b.backend().memory, b.backend().redis
		}
		return s
	}
	bridge.AccountsOf = func(store any) any { return &store.(*RedisStore).accounts }
	bridge.WithExceeded = withExceeded
	bridge.RecordBackend = recordBackend
	bridge.NewRedisStore = func(client rediswire.Client, opts any) any {
		return newRedisStore(client, opts.([]RedisOption)...)
	}
}

// lent implements [bridge.Limiter], which says what each method does.
type lent struct{ *Limiter }

func (l lent) HoldOff(ctx context.Context, limit Limit, d time.Duration) {
	if d <= 0 || limit.Rule == nil {
		return
	}
	held := min(max(d, time.Microsecond), max(time.Hour, plan.NumbersOf(limit.Rule).Window()), rule.MaxWindow)
	ctx, cancel := l.settleContext(ctx)
	defer cancel()
	err := l.Hold(ctx, limit, held)
	l.events.HeldOff(ctx, limit.Rule, held, held < d, ClassOf(err), err)
}

func (l lent) PeerRefused(ctx context.Context, rule *Rule) {
	for _, o := range l.events.Observers {
		report.NotifyWith(l.events, ctx, o.PeerRefused, observe.PeerRefusedEvent{Rule: rule.Name})
	}
}

func (l lent) Peer(ctx context.Context, limit Limit, of *peerstate.Limit, said peerstate.Said) peerstate.State {
	p, err := l.plans.ForHold(&limit)
	if err != nil || keyError(&limit) != nil {
		return peerstate.State{} // the call has the error
	}
	var array [terms.ShortKey]byte
	return l.peers.Say(ctx, p.AppendKey(array[:0], rule.Engine.PartsOf(&limit).Bytes()), of, said)
}

func (l lent) Waits(ctx context.Context, rule *Rule) (over func(admitted bool)) {
	since := clock.Now()
	l.events.Waits(ctx, observe.WaitEvent{Rule: rule.Name, Waiting: true})
	return func(admitted bool) {
		l.events.Waits(ctx, observe.WaitEvent{Rule: rule.Name, Waited: clock.Now() - since, Admitted: admitted})
	}
}

func (l lent) TooLate(ctx context.Context, limit Limit, waited, after time.Duration) error {
	p, on, err := l.plans.Plan(&limit)
	if err != nil {
		return l.refusalError(ctx, err)
	}
	if !on { // just now: what is in force had it wait
		return l.refusalError(ctx, &LimitedError{Rule: limit.Rule.Name, Limit: limit.Max, RetryAfter: after})
	}
	charges := []decide.Charge{{Plan: p, Key: p.AppendKey(nil, rule.Engine.PartsOf(&limit).Bytes()), Cost: limit.Cost,
		Max: limit.Max, Limits: 1}}
	tries := make([]terms.Charge, 1)
	p.Charge(&tries[0], charges[0].Key, limit.Cost)
	tries[0].Source, tries[0].RetryAfter = rule.SourceRecalled, after
	return l.refusalError(ctx, l.answer(ctx, charges, tries, clock.Now(), waited, new(Decision)))
}

func (l lent) Try(ctx context.Context, into any, waited time.Duration, mayWait func() bool, limits ...Limit) (again bool, err error) {
	d := into.(*Decision)
	if !l.Enabled() || anyExempt.Load() && isExempt(ctx) {
		d.Allowed = true
		return false, nil
	}
	c := decide.NewCall(decide.Take)
	defer c.Free()
	c.WaitedBefore, c.MayWait = waited, mayWait
	var paid paidCap
	if err = l.takeFor(ctx, c, limits, &paid, d); err != nil {
		l.processCap.giveBack(&paid)
	}
	if err == ledger.ErrNoRoom {
		return true, nil
	}
	return false, l.refusalError(ctx, err)
}

func (l lent) Closed() <-chan struct{} { return l.closed }

func (l lent) Refuse(ctx context.Context, err error) error { return l.refusalError(ctx, err) }

func (l lent) Measure(r *Rule, start time.Time) {
	if plan.Adapts(r) {
		l.plans.Factors.Measure(r, time.Since(start))
	}
}

func (l lent) Factor(r *Rule) float64 {
	if plan.Adapts(r) {
		return l.plans.Factors.Last(r)
	}
	return 1
}

func (l lent) KeysOf(r *Rule) *bridge.KeyGroup {
	var tag server.Tag
	g := &bridge.KeyGroup{Prefix: plan.Start(l.plans.Namespace, r)}
	for e := range l.plans.Overrides().Effective(r).All() {
		most := e.Max
		if most == plan.Unset {
			most = r.Max
		}
		n := plan.NumbersOf(e.Rule)
		g.Expiry = max(g.Expiry, n.Longest(most))
		tag.Add(n.Tag())
	}
	g.Tag = tag
	return g
}

func (l lent) Tenants(ctx context.Context, limit Limit, most int) ([]bridge.Tenant, int64, error) {
	key := l.RedisKey(limit)
	memory := l.store.memory
	if key == "" || limit.Rule.Headroom == 0 || l.redis == nil && memory == nil {
		return nil, 0, nil
	}
	if l.redis != nil {
		return server.Tenants(ctx, l.redis.client, key, most)
	}
	ranks, blocks, now, zero, total := memory.states.Tenants(memory.states.Time(clock.Now()), []byte(key), most)
	return server.TenantsOf(ranks, blocks, now, zero), total, nil
}

func (l lent) RedisKey(limit Limit) string {
	if rule.Engine.CheckPrefix(limit.Rule) != nil {
		return ""
	}
	return string(l.plans.Label(&limit).AppendKey(nil, rule.Engine.PartsOf(&limit).Bytes()))
}

func (l lent) Permits() map[string]int64 { return l.ledger.Permits.InFlight() }

func (l lent) Leased() map[string]int64 { return l.ledger.Leases.Units() }

func (l lent) Processes(ctx context.Context) ([]bridge.Process, error) {
	if l.redis == nil {
		return nil, nil
	}
	return lentStore{l.redis}.Processes(ctx, l.plans.Namespace)
}

func (l lent) RefusedMinutes(ctx context.Context, since time.Time) ([]bridge.RefusedMinute, error) {
	if l.redis == nil {
		return nil, nil
	}
	return lentStore{l.redis}.RefusedMinutes(ctx, l.plans.Namespace, since)
}

func (l lent) ToldKey(key string) string { return l.reporter.Hidden(key) }

// A replaced store is a [Store] whose calls something else decides.
type replaced backend

func (r replaced) backend() backend { return backend(r) }

// lentStore implements [bridge.RedisStore].
type lentStore struct{ *RedisStore }

func (s lentStore) Failures() map[observe.ErrorClass]int64 {
	counts := make(map[observe.ErrorClass]int64)
	for class := range s.failures {
		if n := s.failures[class].Load(); n > 0 {
			counts[observe.ErrorClass(class)] = n
		}
	}
	return counts
}

func (s lentStore) Survey(ctx context.Context, groups ...*bridge.KeyGroup) error {
	each := make([]server.Group, len(groups))
	for i, g := range groups {
		g.Keys, g.Bytes, g.Endless, g.Healed = 0, 0, 0, 0
		tag, _ := g.Tag.(server.Tag)
		each[i] = server.Group{Prefix: g.Prefix, Tag: tag, Expiry: g.Expiry, Found: func(f server.Found) { addKey(g, f) }}
	}
	return server.Survey(ctx, s.client, each...)
}

// addKey counts a key that a survey has found.
func addKey(g *bridge.KeyGroup, f server.Found) {
	g.Keys++
	g.Bytes += f.Bytes
	if f.Expiry == -1 {
		g.Endless++
	}
	if f.Healed {
		g.Healed++
	}
	if g.Each != nil {
		g.Each(bridge.FoundKey{Key: f.Key, Text: f.Text, Bytes: f.Bytes, Expiry: f.Expiry})
	}
}

func (s lentStore) Processes(ctx context.Context, namespace string) ([]bridge.Process, error) {
	return server.Processes(ctx, s.client, namespace)
}

func (s lentStore) RefusedMinutes(ctx context.Context, namespace string, since time.Time) ([]bridge.RefusedMinute, error) {
	return server.Refused(ctx, s.client, namespace, since)
}
