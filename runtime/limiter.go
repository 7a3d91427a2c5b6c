package runtime

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime/internal/private"
)

// A Limiter has a [Store] decide calls and turns its answers into errors. It is
// safe for concurrent use. A program usually has one.
//
// A nil *Limiter has no store: every call is decided by its rule's failure
// policy.
type Limiter struct {
	store     Store
	seed      maphash.Seed // of the marks of decisions
	fast      fastPath
	plans     planTable
	local     *MemoryStore
	namespace string
	fail      FailurePolicy
	replicas  int64
	cap       *processCap // nil: no cap
	enabled   func() bool
	denied    func(context.Context, error) error // or nil
	switched  bool                               // limits can be switched off
	events    *events

	follow     *follower // nil: nothing is overridden
	overrides  atomic.Pointer[overrideSet]
	scaling    scaling
	shares     ruleTable[share]
	rests      ruleTable[shadowRest]
	registered ruleTable[struct{}]
	unsettled  settleQueue
	permits    permits
	leases     *leases // nil: the store is not shared with other processes
}

// An Option configures a [Limiter].
type Option func(*Limiter)

// WithNamespace starts every Redis key with name and a colon. Programs that
// share a Redis need different namespaces, because the default prefix of a
// rule names its package but not its program.
func WithNamespace(name string) Option {
	return func(l *Limiter) { l.namespace = name }
}

// WithFailurePolicy sets the policy for calls that the store does not decide and
// whose rule has no policy of its own. The default is [FailOpen].
func WithFailurePolicy(p FailurePolicy) Option {
	return func(l *Limiter) { l.fail = p }
}

// WithEnabled makes enabled a kill switch: while it returns false every call
// goes through, nothing is counted and no key is built. It is called before
// every call, from many goroutines, and so must be quick; the Load method of an
// atomic.Bool fits. A panic in it counts as true, and is reported.
func WithEnabled(enabled func() bool) Option {
	return func(l *Limiter) { l.enabled = enabled }
}

// WithLogger sets where the limiter reports denials and the store's failures:
// at most one line a second for each rule and kind, with the number of lines
// left out. No line has a caller's key or a server's address in it, see
// [BreakerEvent] for the latter. The default is [slog.Default] as it is at the time of
// the line.
func WithLogger(logger *slog.Logger) Option {
	return func(l *Limiter) { l.events.log.loggers = []*slog.Logger{logger} }
}

// New returns a Limiter that keeps its counts in store. [Limiter.Close] ends
// the goroutines that it has started.
func New(store Store, opts ...Option) *Limiter {
	l := &Limiter{store: store, seed: maphash.MakeSeed(), local: NewMemoryStore(), replicas: 1, events: newEvents(nil)}
	l.permits.limiter = l
	for _, opt := range opts {
		opt(l)
	}
	l.fast = fastPathOf(store)
	if _, ok := store.(leaser); ok {
		l.leases = newLeases(l)
	}
	l.switched = l.enabled != nil || l.follow != nil
	if s, ok := store.(observable); ok {
		s.attach(l.events)
	}
	l.events.show(store)
	l.shareClock(memoryOf(store))
	l.checkReplicas()
	if l.follow != nil {
		l.follow.start(l)
	}
	l.events.attached(l)
	return l
}

// shareClock has the limiter's own counts use the clock of its store, if that was
// given one.
func (l *Limiter) shareClock(m *MemoryStore) {
	if m == nil || m.clock == nil {
		return
	}
	l.local.clock = m.clock
	if l.cap != nil {
		l.cap.store.clock = m.clock
	}
}

var withoutStore = New(nil)

// Enabled reports whether limits are in force, see [WithEnabled] and
// [WithOverrides]. Generated code calls it before it builds a key.
func (l *Limiter) Enabled() bool {
	return l == nil || !l.switched || l.switchedOn()
}

// switchedOn reports whether neither the overrides nor the program's kill switch
// switch limits off. A kill switch that panics is on.
func (l *Limiter) switchedOn() (on bool) {
	if o := l.overrides.Load(); o != nil && !o.enabled() {
		return false
	}
	if l.enabled == nil {
		return true
	}
	defer func() {
		if value := recover(); value != nil {
			l.events.panicked("kill switch", value)
			on = true
		}
	}()
	return l.enabled()
}

// Take charges all limits, or none of them if one has no room. If rules have a
// Wait it returns when it is the call's turn. The error is nil if and only if the
// call may go on. Otherwise, without [WithDenied], it is
//
//   - a [*LimitedError], which is [ErrLimited], if a limit has no room;
//   - [ErrUnavailable] if the store gave no answer and a rule fails closed;
//   - [ErrInvalidKey] if a key could not be built and its rule fails closed;
//   - [ErrInvalidLimit] if the numbers of a limit are out of bounds;
//   - the context's error, if the context ended first.
//
// A limit in [Shadow] mode causes none of these, and no wait. Without limits
// every call may go on.
//
// A call that waits is decided by the overrides, the load and the kill switch that hold
// at each try.
//
// Limits with one key, which is that of rules with one Prefix and of equal parts, are
// charged together: what both cost, but no more than could ever be admitted, under the
// lower max and the first one's Name. Their rules must be equal but for Max, Name,
// Message, Mode, Fail and Wait, or it is [ErrInvalidLimit]. One in [Shadow] mode is left
// out.
func (l *Limiter) Take(ctx context.Context, limits ...Limit) (d Decision, err error) {
	err = l.takeInto(ctx, limits, &d)
	return d, err
}

// takeInto is Take for a decision of its caller's. Take is inlined for it, which saves
// a copy of every decision.
func (l *Limiter) takeInto(ctx context.Context, limits []Limit, d *Decision) (err error) {
	if !l.Enabled() || isExempt(ctx) {
		d.Allowed = true
		return nil
	}
	if l == nil {
		l = withoutStore
	}
	if l.leases != nil && len(limits) == 1 && limits[0].leased() && l.takeLeased(ctx, &limits[0], d) {
		return nil
	}
	if len(limits) == 1 && l.fast != (fastPath{}) {
		if done, err := l.takeFast(ctx, &limits[0], d); done {
			if err != nil {
				err = l.refused(ctx, err)
			}
			return err
		}
	}
	return l.takeGeneral(ctx, limits, d)
}

// takeGeneral is Take for all calls, by way of a request.
func (l *Limiter) takeGeneral(ctx context.Context, limits []Limit, d *Decision) (err error) {
	req := newRequest()
	defer req.free()
	if err := req.fill(ctx, l, limits); err != nil {
		return l.refused(ctx, err)
	}
	switch {
	case l.cap != nil:
		err = l.takeCapped(ctx, req, limits, d)
	case len(req.charges) == 0:
		d.Allowed = true
	default:
		err = l.take(ctx, req, limits, d)
	}
	l.waited(ctx, req, err)
	if err != nil {
		err = l.refused(ctx, err)
	}
	return err
}

// take has a request decided, and decided again after a wait where its rules
// have one. It returns when it is the call's turn.
func (l *Limiter) take(ctx context.Context, req *request, limits []Limit, d *Decision) error {
	*d = Decision{}
	start := req.start()
	req.limitWait(ctx, start)
	waited, err := l.permits.follow(ctx, req)
	for {
		if waited && err == nil {
			err = l.renew(ctx, req, limits)
		}
		if err != nil || len(req.charges) == 0 {
			req.leaveLine(err == nil)
			d.Allowed = err == nil // nothing is left to decide
			return err
		}
		req.limitWait(ctx, start)
		req.call[0].arrived = instant()
		source, failure := l.decide(ctx, req)
		if failure == nil && !req.call[0].admitted() {
			if pause, ok := req.pause(); ok {
				waited, err = true, l.pause(ctx, req, limits, pause)
				continue
			}
		}
		if req.turn != nil {
			req.leaveLine(failure != nil || req.leftOver())
		}
		if err := l.finish(ctx, req, limits, source, failure, d); err != nil {
			return err
		}
		if err := l.awaitTurn(ctx, req, limits); err != nil {
			d.left = true
			_ = l.Refund(ctx, *d, limits...)
			*d = Decision{}
			return err
		}
		return nil
	}
}

// decide has a request decided once.
func (l *Limiter) decide(ctx context.Context, req *request) (Source, error) {
	if req.denyUnsatisfiable() {
		return SourceNone, nil
	}
	if l.leases != nil && req.leased() {
		return l.decideLeased(ctx, req)
	}
	return l.decidedBy(ctx, req, l.ask(ctx, req.call[:]))
}

// ask has calls decided by the store.
func (l *Limiter) ask(ctx context.Context, calls []Call) error {
	if l.store == nil {
		return errNoStore
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.store.Take(ctx, calls)
}

// decidedBy returns who decided a request that the store was asked about. If err
// or the call's own error says that the store did not, the failure policies
// decide. A context that has ended is no failure of the store, but its error
// refuses no call that has shadow limits only.
func (l *Limiter) decidedBy(ctx context.Context, req *request, err error) (Source, error) {
	if err == nil {
		err = req.call[0].Err
	}
	switch {
	case err == nil:
		l.shadowsDecided(ctx, req)
		return SourceStore, nil
	case ctx.Err() == nil:
		return l.failed(ctx, req, private.Hide(err))
	case req.call[0].enforces():
		return SourceNone, ctx.Err()
	default:
		req.pass()
		return SourceNone, nil
	}
}

// finish reports the decision about a request for limits and returns its caller's error.
func (l *Limiter) finish(ctx context.Context, req *request, limits []Limit, source Source, err error, d *Decision) error {
	if l.events.decides() {
		l.events.decided(ctx, req.charges, req.call[0].arrived, source, err)
	}
	*d = Decision{Source: source}
	if err != nil {
		return err
	}
	if l.events.keys && source != SourceProcess {
		l.keysDenied(ctx, req.charges)
	}
	err = l.answer(req.charges, req.call[0].arrived, d)
	exceed(ctx, req.charges)
	if d.isCharged() {
		page, receipt := req.receipts.Issue()
		l.issue(d, limits, page, receipt)
		l.permits.holdAll(req.charges, source == SourceLocal)
	}
	return err
}

// answer fills in a decision that has its source only, logs the denials of a
// call that arrived at an instant, and returns its caller's error.
func (l *Limiter) answer(charges []Charge, arrived time.Duration, d *Decision) error {
	charge := d.ofAll(charges)
	for i := range charges {
		if c := &charges[i]; !c.Allowed && !c.Rule.Mode.Denies() {
			l.events.log.shadowDenied(c, d.Source, arrived)
		}
	}
	if !d.Allowed {
		return l.events.log.deny(charge.Rule, charge.Cost, d, arrived)
	}
	return nil
}
