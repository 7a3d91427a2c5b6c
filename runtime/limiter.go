package runtime

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// A Limiter puts calls before a [Store] and turns its answers into errors. It
// is safe for concurrent use; a program usually has one.
//
// A nil *Limiter has no store: every call is decided by its rule's failure
// policy.
type Limiter struct {
	store     Store
	fast      fastPath
	local     *MemoryStore
	namespace string
	fail      FailurePolicy
	replicas  int64
	cap       *processCap // nil: there is none
	enabled   func() bool
	switched  bool // somebody may switch limits off
	events    *events

	follow    *follower // nil: nothing is overridden
	overrides atomic.Pointer[ruling]
	scaling   scaling
	shares    ruleTable[share]
}

// An Option configures a [Limiter].
type Option func(*Limiter)

// WithNamespace starts every Redis key with name and a colon. Programs that
// share a Redis need different namespaces, because the default prefix of a
// rule names its package but not its program.
func WithNamespace(name string) Option {
	return func(l *Limiter) { l.namespace = name }
}

// WithFailurePolicy sets what becomes of a call when the store gives no answer
// and the call's rule does not say. The default is [FailOpen].
func WithFailurePolicy(p FailurePolicy) Option {
	return func(l *Limiter) { l.fail = p }
}

// WithEnabled makes enabled a kill switch: while it returns false every call
// goes through, nothing is counted and no key is built. It is asked before
// every call, from many goroutines, and so must be quick; the Load method of an
// atomic.Bool fits.
func WithEnabled(enabled func() bool) Option {
	return func(l *Limiter) { l.enabled = enabled }
}

// WithLogger sets where the limiter reports denials and the store's failures:
// at most one line a second for each rule and kind, with the number of lines
// left out, and never with a key in it. The default is [slog.Default] as it is
// at the time of the line.
func WithLogger(logger *slog.Logger) Option {
	return func(l *Limiter) { l.events.log = newLimitedLog(logger) }
}

// New returns a Limiter that keeps its counts in store. [Limiter.Close] ends
// what it has started.
func New(store Store, opts ...Option) *Limiter {
	l := &Limiter{store: store, local: NewMemoryStore(), replicas: 1, events: &events{log: newLimitedLog(nil)}}
	for _, opt := range opts {
		opt(l)
	}
	l.fast = fastPathOf(store)
	l.switched = l.enabled != nil || l.follow != nil
	if s, ok := store.(observable); ok {
		s.attach(l.events)
	}
	if l.follow != nil {
		l.follow.start(l)
	}
	return l
}

var withoutStore = New(nil)

// Enabled reports whether limits are in force, see [WithEnabled] and
// [WithOverrides]. Generated code asks before it builds a key.
func (l *Limiter) Enabled() bool {
	return l == nil || !l.switched || l.switchedOn()
}

// switchedOn asks the overrides and the program's kill switch. One that panics
// is not off.
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

// Take charges all limits, or none of them if one has no room, and says so. If
// rules have a Wait it returns when it is the call's turn. The error is nil if
// and only if the call may go on. Otherwise it is
//
//   - a [*LimitedError], which is [ErrLimited], if a limit has no room;
//   - [ErrUnavailable] if the store gave no answer and a rule fails closed;
//   - [ErrInvalidKey] if a key could not be built and its rule fails closed;
//   - [ErrInvalidLimit] if the numbers of a limit make no sense;
//   - the context's error, if the context ended first.
func (l *Limiter) Take(ctx context.Context, limits ...Limit) (d Decision, err error) {
	if !l.Enabled() {
		d.Allowed = true
		return d, nil
	}
	if l == nil {
		l = withoutStore
	}
	if len(limits) == 1 && l.fast != (fastPath{}) {
		if done, err := l.takeFast(ctx, &limits[0], &d); done {
			return d, err
		}
	}
	req := newRequest()
	defer req.free()
	if err := req.fill(l, limits); err != nil {
		return d, err
	}
	switch {
	case l.cap != nil:
		err = l.takeCapped(ctx, req, limits, &d)
	case len(req.charges) == 0:
		d.Allowed = true
	default:
		err = l.take(ctx, req, limits, &d)
	}
	return d, err
}

// take has a request decided, and again when it is worth another try, and
// returns when it is its turn.
func (l *Limiter) take(ctx context.Context, req *request, limits []Limit, d *Decision) error {
	for start := req.start(); ; {
		req.limitWait(ctx, start)
		req.call[0].came = instant()
		source, err := l.decide(ctx, req)
		if err == nil && !req.call[0].admitted() {
			if pause, ok := req.pause(); ok {
				if err := sleep(ctx, pause); err != nil {
					*d = Decision{}
					return err
				}
				continue
			}
		}
		if err := l.conclude(req, source, err, d); err != nil {
			return err
		}
		if err := sleep(ctx, req.delay()); err != nil {
			_ = l.Refund(context.WithoutCancel(ctx), *d, limits...)
			*d = Decision{}
			return err
		}
		return nil
	}
}

// decide has a request decided once.
func (l *Limiter) decide(ctx context.Context, req *request) (Source, error) {
	req.unshare()
	if req.hopeless() {
		return SourceNone, nil
	}
	return l.settle(ctx, req, l.ask(ctx, req.call[:]))
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

// settle returns who decided a request that was put to the store. If that gave
// no answer, which err or the call's own error says, the failure policies
// decide; a context that has ended is not a failure of the store's.
func (l *Limiter) settle(ctx context.Context, req *request, err error) (Source, error) {
	if err == nil {
		err = req.call[0].Err
	}
	switch {
	case err == nil:
		return SourceStore, nil
	case ctx.Err() != nil:
		return SourceNone, ctx.Err()
	default:
		return l.failed(ctx, req, err)
	}
}

// conclude turns what was found about a request into what its caller gets.
func (l *Limiter) conclude(req *request, source Source, err error, d *Decision) error {
	if l.events.decides() {
		l.events.decided(req.charges, req.call[0].came, source, err)
	}
	*d = Decision{Source: source}
	if err != nil {
		return err
	}
	return l.answer(req.charges, req.call[0].came, d)
}

// answer fills in a decision of which only the source is known, reports denials
// of a call that came at an instant, and returns what its caller gets.
func (l *Limiter) answer(charges []Charge, came time.Duration, d *Decision) error {
	charge := d.ofAll(charges)
	for i := range charges {
		if c := &charges[i]; !c.Allowed && c.Rule.Mode == Shadow {
			l.events.log.denied(c, d.Source, came)
		}
	}
	if !d.Allowed {
		l.events.log.denied(charge, d.Source, came)
		return newLimitedError(charge)
	}
	return nil
}
