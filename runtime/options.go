package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"weak"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/peerstate"
	"github.com/rategen/rategen/runtime/internal/findings"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/server"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// An Option configures a [Limiter].
type Option func(*Limiter)

// WithNamespace starts every Redis key with name and a colon. Programs that share a Redis need
// different namespaces, because the default prefix of a rule names its package but not its
// program.
func WithNamespace(name string) Option { return func(l *Limiter) { l.plans.Namespace = name } }

// WithFailurePolicy sets the policy for calls that the store does not decide and whose rule has
// no policy of its own. The default is [FailOpen].
func WithFailurePolicy(p FailurePolicy) Option { return func(l *Limiter) { l.plans.Fail = p } }

// WithReplicas sets how many processes share the limits. While the store gives no answer, each
// of them admits an n-th of the max and burst of a rule that fails locally, rounded down but at
// least 1: together they admit no more than the rule does, or n if that is more. A call that
// costs more than that share takes all of it. The default is 1. It panics unless n is positive.
func WithReplicas(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("runtime: WithReplicas(%d): say how many processes share the limits, 1 or more", n))
	}
	return func(l *Limiter) { l.plans.Replicas = int64(n) }
}

// WithLocalKeys sets of how many keys this process counts at most where it decides alone, by
// [FailLocal], rounded up to a multiple of 64. What becomes of more is as in a [MemoryStore]. The
// default is 131,072. It panics unless n is positive.
func WithLocalKeys(n int) Option {
	if n < 1 {
		panic(fmt.Sprintf("runtime: WithLocalKeys(%d): the number of keys must be positive", n))
	}
	return func(l *Limiter) { l.engine.Alone = memstate.NewStore(n) }
}

// WithEnabled makes enabled a kill switch: while it returns false every call goes through,
// nothing is counted and no key is built. It is called before every call, from many goroutines,
// and so must be quick; the Load method of an atomic.Bool fits. A panic in it counts as true,
// and is reported. A nil enabled is no switch. New panics if there are two.
func WithEnabled(enabled func() bool) Option {
	return func(l *Limiter) {
		checkOnce("WithEnabled", l.enabled != nil && enabled != nil)
		l.enabled = enabled
	}
}

// checkOnce panics if an option was given before: one of the two would have no effect.
func checkOnce(option string, before bool) {
	if before {
		panic("runtime: " + option + " is given twice, and only one could hold: join them")
	}
}

// WithLogger sets where the limiter reports refusals and the store's failures: at most one line
// a second for each rule and kind, and one for all rules of each class of what the store does not
// decide, with the number of lines left out. No line has a caller's key or a server's address in
// it: servers have numbers. The default is [slog.Default] as it is at the time of the line.
func WithLogger(logger *slog.Logger) Option {
	return func(l *Limiter) { l.events.Log.Loggers = []*slog.Logger{logger} }
}

// WithObserver adds an observer, which must not be changed any more. Several observers are
// called in the order of the options. A nil observer adds nothing.
//
// Events of a store reach every limiter on it until [Limiter.Close]. An observer that several
// of these limiters share is called once for each event.
func WithObserver(o *observe.Observer) Option { return func(l *Limiter) { l.events.Observe(o) } }

// WithScaler makes s scale every adaptive rule, in place of the rule's own scaler.
func WithScaler(s rule.Scaler) Option { return func(l *Limiter) { l.scaler = s } }

// New returns a Limiter that keeps its counts in store. Without one every call is decided by
// its rule's failure policy. [Limiter.Close] ends the goroutines that it has started.
func New(store Store, opts ...Option) *Limiter {
	l := &Limiter{peers: new(peerstate.Table), closed: make(chan struct{}), events: report.NewEvents([]*findings.List{new(findings.List)}, nil)}
	if store != nil {
		l.store = store.backend()
	}
	l.redis = l.store.redis
	l.plans.Replicas = 1
	l.engine.Alone = memstate.NewStore(defaultMaxKeys)
	for _, opt := range opts {
		opt(l)
	}
	if m := l.store.memory; m != nil { // the counts of this process use its clock
		l.engine.Alone.Clock = m.states.Clock
		if l.processCap != nil {
			l.processCap.counts.InProcess.Clock = m.states.Clock
		}
		l.hasMemory = m.listeners.Add(l.events) && l.store.builtIn
		l.peers = &m.peers
	}
	l.engine.Alone.Lost = func(blocked bool) {
		l.events.Log.KeysForgotten(blocked, l.engine.Alone.Bound(), "runtime.WithLocalKeys")
	}
	l.build()
	l.hasSwitch = l.enabled != nil || l.poller != nil
	if l.redis != nil {
		l.redis.attach(l.events)
		l.peers = &l.redis.peers
	}
	if w, ok := l.store.Store.(report.Witness); ok {
		l.events.Witness, l.events.Decisions = w, true
	}
	if s, ok := l.store.Store.(interface{ Listen(*findings.List) }); ok { // that of package ratetest
		s.Listen(l.events.Log.Lists[0])
	}
	if l.store.Store == nil && l.enabled == nil {
		l.events.Log.Find(report.NoStore, "", "")
	}
	if l.store.builtIn && l.store.memory != nil && l.plans.Replicas > 1 { // each of which admits as much as a rule does
		l.events.Log.Find(report.MemoryOfReplicas, "", "")
	}
	l.pollOverrides()
	watched := weak.Make(l) // which a timer need not keep in memory
	l.unusedTimer = time.AfterFunc(unusedAfter, func() {
		if l := watched.Value(); l != nil {
			l.checkUse()
		}
	})
	l.engine.Calls = l.reporter.Begin()
	for _, o := range l.events.Observers {
		report.Notify[observe.Limiter](l.events, "observer", o.Attach, l)
	}
	return l
}

// build puts the engine together.
func (l *Limiter) build() {
	l.plans.CallAfterClose = func() { l.events.Log.Find(report.Closed, "", "") }
	l.plans.Reached, l.plans.NewPlan = l.events.ShareListener(), l.beginPlan
	l.plans.Factors.Make, l.plans.Factors.Changed = l.newFactor, l.reportFactor
	e := &l.engine
	e.Store = l.store.Store
	if l.store.builtIn && l.store.memory != nil {
		e.InProcess = l.store.memory.states
	}
	if l.redis != nil {
		e.Refusals = l.redis.cfg.Refusals
	}
	c := ledger.Config{
		Plans:  &l.plans,
		Stores: [2]terms.Store{e.Store, e.Alone}, InMemory: l.store.memory != nil, Leases: l.store.leases,
		Bound: l.settleContext,
		Contain: func() {
			if value := recover(); value != nil {
				l.events.Log.Panic("store", value)
			}
		},
		Unsettled:   func(ctx context.Context, r *Rule, err error) { l.events.Unsettled(ctx, r, ClassOf(err), err) },
		AllRefunded: func(rule string) { l.events.Log.Find(report.AllRefunded, rule, "") },
		NotRenewed:  l.events.Log.NotRenewed,
	}
	if l.events.Settled {
		c.Settling = e.TellSettling
	}
	if l.redis != nil && l.store.builtIn {
		c.Returner = l.redis.router
	}
	l.ledger = ledger.New(c)
	e.Leases = l.ledger.Leases
	e.Events, e.Exceeded = l.events, exceed
	e.Plans, e.Lines, e.Permits, e.Switch = &l.plans, &l.ledger.Lines, &l.ledger.Permits, l
	e.Closed, e.Polls = l.closed, l.enabled != nil
	r := &l.reporter
	r.Namespace, r.Events, r.State, r.Decided, r.Permits = l.plans.Namespace, l.events, l.state, l.decided, l.heldPermits
	r.Denied = func(err error) bool { return ClassOf(err) == observe.ClassAuth }
	if l.redis != nil {
		r.Client = l.redis.client
	}
}

// state returns what is in force.
func (l *Limiter) state() server.State {
	s := server.State{Rules: l.Rules()}
	if len(s.Rules) == 0 {
		return s // nobody is told
	}
	if o := l.plans.Overrides(); o != nil {
		s.Version = o.Version()
	}
	calls := make(map[string]int64) // of each rule, about
	for name, n := range l.decided() {
		calls[name] = n[0] + n[1] + n[2] + n[3]
	}
	s.Findings = bridge.GroupFindings(lent{l}.Found(), calls)
	return s
}

// decided returns how many calls of each rule were of which outcome, about.
func (l *Limiter) decided() map[string][4]int64 {
	all := make(map[string][4]int64)
	for rule, sample := range l.plans.Samples.All() {
		n := all[rule.Name]
		for i := range n {
			n[i] += sample.Calls[i].Load()
		}
		all[rule.Name] = n
	}
	return all
}

// heldPermits returns the permits of the keys that calls have held for longest.
func (l *Limiter) heldPermits(most int) (all []bridge.KeyPermits) {
	for _, h := range l.ledger.Permits.Oldest(most) {
		all = append(all, bridge.KeyPermits{Rule: h.Plan.Name, Key: string(h.Plan.Parts([]byte(h.Key))), Permits: h.Permits, Since: time.UnixMicro(h.Since).UTC()})
	}
	return all
}

// beginPlan tells the store, the ledger and the findings of a new plan.
func (l *Limiter) beginPlan(p *plan.Plan) {
	l.redis.checkDurability(p.Rule)
	r := p.Rule
	if l.redis != nil && r.Ledger > 0 && p.Err == nil {
		if other := l.redis.accounts.Add(p, l.plans.Namespace); other != "" {
			l.events.Log.Find(report.LedgerShared, r.Name, "", slog.String("other", other))
		}
	}
	if r.Block == 0 {
		return
	}
	if r.Mode.Refuses() {
		l.events.Log.RemoveRules(report.IdleBlock, func(rule string) bool { return rule == r.Name })
	} else {
		l.events.Log.Find(report.IdleBlock, r.Name, "")
	}
}

// Close ends the waits of all calls, those of package rateclient too, with [ErrClosed]. It settles
// what [Limiter.SettleLater] has left, refunds leases, and ends the renewal of permits, the polling
// of the override source and the calls of scalers. It returns when they have ended. The error is
// non-nil if and only if something is not settled, or a permit may not be returned, after two
// seconds, the override source still runs a second after its context has ended, or a [rule.Scaler]
// after another second. A second Close waits for the same.
//
// Permits that calls still hold lapse within their window unless they are returned before.
// Calls are still decided, with the overrides and factors as they are, but events of the store
// no longer reach the limiter. The store stays open.
//
// A server that shuts down waits for requests that wait for their turn. So close the limiter when
// that begins: in a function of RegisterOnShutdown, or before GracefulStop of gRPC. A BaseContext
// that is canceled then ends their waits, too, and with them the requests that do not wait.
func (l *Limiter) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	err := l.ledger.Close(SettleTimeout)
	l.events.Close()
	if l.redis != nil {
		l.redis.listeners.Remove(l.events)
	}
	if m := l.store.memory; m != nil {
		m.listeners.Remove(l.events)
	}
	err = errors.Join(err, l.poller.Close(), l.plans.Factors.Close())
	l.unusedTimer.Stop()
	l.reporter.Close(SettleTimeout)
	if l.plans.Close() {
		for _, o := range l.events.Observers {
			report.Notify[observe.Limiter](l.events, "observer", o.Detach, l)
		}
	}
	return err
}

// checkSwitch reports whether neither the overrides nor the program's kill switch switch limits
// off. A kill switch that panics is on.
func (l *Limiter) checkSwitch() (on bool) {
	if o := l.plans.Overrides(); o != nil && o.Off {
		return false
	}
	if l.enabled == nil {
		return true
	}
	on = true
	defer l.events.Contain("kill switch")
	return l.enabled()
}

// newFactor returns what the scaler says of a rule, and 1 if it panics.
func (l *Limiter) newFactor(r *Rule, last float64, recent, usual time.Duration) (factor float64) {
	factor = 1
	defer l.events.Contain("scaler")
	return cmp.Or(l.scaler, r.Adaptive).Factor(rule.Load{Rule: r, Factor: last, Latency: recent, Usual: usual})
}

func (l *Limiter) reportFactor(r *Rule, factor float64) {
	for _, o := range l.events.Observers {
		report.Notify(l.events, "observer", o.Scale, observe.ScaleEvent{Rule: r.Name, Factor: factor})
	}
}
