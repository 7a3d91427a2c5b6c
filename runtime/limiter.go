package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// A Limiter puts calls before a [Store] and turns its answers into errors. It
// is safe for concurrent use; a program usually has one.
//
// A nil *Limiter has no store: every call is decided by its rule's failure
// policy.
type Limiter struct {
	store     Store
	local     *MemoryStore
	namespace string
	fail      FailurePolicy
	enabled   func() bool
	log       *limitedLog
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
	return func(l *Limiter) { l.log = newLimitedLog(logger) }
}

// New returns a Limiter that keeps its counts in store.
func New(store Store, opts ...Option) *Limiter {
	l := &Limiter{store: store, local: NewMemoryStore(), log: newLimitedLog(nil)}
	for _, opt := range opts {
		opt(l)
	}
	return l
}

var withoutStore = New(nil)

// Enabled reports whether limits are in force, see [WithEnabled]. Generated
// code asks before it builds a key.
func (l *Limiter) Enabled() bool {
	return l == nil || l.enabled == nil || l.enabled()
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
func (l *Limiter) Take(ctx context.Context, limits ...Limit) (Decision, error) {
	if !l.Enabled() {
		return Decision{Allowed: true}, nil
	}
	if l == nil {
		l = withoutStore
	}
	req := newRequest()
	defer req.free()
	if err := req.fill(l, limits); err != nil {
		return Decision{}, err
	}
	if len(req.charges) == 0 {
		return Decision{Allowed: true}, nil
	}
	for start := req.start(); ; {
		req.limitWait(ctx, start)
		source, err := l.decide(ctx, req)
		if err == nil && !req.call[0].admitted() {
			if pause, ok := req.pause(); ok {
				if err := sleep(ctx, pause); err != nil {
					return Decision{}, err
				}
				continue
			}
		}
		decision, err := l.conclude(req, source, err)
		if err != nil {
			return decision, err
		}
		if err := sleep(ctx, req.delay()); err != nil {
			_ = l.Refund(context.WithoutCancel(ctx), decision, limits...)
			return Decision{}, err
		}
		return decision, nil
	}
}

// decide has a request decided once.
func (l *Limiter) decide(ctx context.Context, req *request) (Source, error) {
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
func (l *Limiter) conclude(req *request, source Source, err error) (Decision, error) {
	if err != nil {
		return Decision{Source: source}, err
	}
	decision, charge := summary(req.charges, source)
	for i := range req.charges {
		if c := &req.charges[i]; !c.Allowed && c.Rule.Mode == Shadow {
			l.log.denied(c, source)
		}
	}
	if !decision.Allowed {
		l.log.denied(charge, decision.Source)
		return decision, newLimitedError(charge)
	}
	return decision, nil
}

var errNoStore = errors.New("the limiter has no store")

// failed lets the failure policies decide a request that the store did not: a
// rule that fails closed refuses it, rules that fail locally have a say each,
// the others let it through.
func (l *Limiter) failed(ctx context.Context, req *request, cause error) (Source, error) {
	var local Call
	for i := range req.charges {
		c := &req.charges[i]
		c.Result = Result{Allowed: true, Remaining: c.Max}
		policy := l.policy(c.Rule)
		l.log.degraded(c.Rule, policy, cause)
		switch policy {
		case FailClosed:
			return SourceFailure, fmt.Errorf("%w: rule %q: %w", ErrUnavailable, c.Rule.Name, cause)
		case FailLocal:
			local.Charges = append(local.Charges, *c)
		}
	}
	if len(local.Charges) == 0 {
		return SourceFailure, nil
	}
	calls := []Call{local}
	if err := errors.Join(l.local.Take(ctx, calls), calls[0].Err); err != nil {
		return SourceFailure, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	for i := range local.Charges {
		req.chargeOf(local.Charges[i].limit).Result = local.Charges[i].Result
	}
	return SourceLocal, nil
}

func (l *Limiter) policy(r *Rule) FailurePolicy {
	if r.Fail != FailDefault {
		return r.Fail
	}
	if l.fail != FailDefault {
		return l.fail
	}
	return FailOpen
}
