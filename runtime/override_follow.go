package runtime

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/stale"
)

// DefaultOverrideInterval is how often an override source is polled by default.
const DefaultOverrideInterval = time.Second

const (
	// firstOverrides is how long [New] waits for the first overrides, so that
	// a limit which is switched off stays off when a program starts.
	firstOverrides = 100 * time.Millisecond
	// sourceGrace is how long a source may go on when its context has ended.
	sourceGrace = time.Second
	// reportAgain is how often one and the same error is reported again.
	reportAgain = time.Minute
)

// inSource is the kind of function that an override source is.
const inSource = "override source"

var errSourceHangs = private.New("the override source goes on after its context has ended")

// WithOverrides changes rules while the program runs: source is polled at once
// and then at every interval, 0 standing for [DefaultOverrideInterval]. Its
// overrides are in force for all later calls. If any of them is invalid, or does
// not fit a rule that the limiter knows, all are rejected and the last good ones
// stay. A rule becomes known with its first call; if its override does not fit
// then, the rule stays as declared. The last good ones stay as well while the source
// cannot be read. Either is reported once, and again every minute while the error stays
// the same.
//
// [New] waits for the first answer for at most 100 ms. Until there is one, rules
// are as declared. [Limiter.Close] ends the polling.
func WithOverrides(source OverrideSource, interval time.Duration) Option {
	return func(l *Limiter) {
		if interval <= 0 {
			interval = DefaultOverrideInterval
		}
		l.follow = &follower{source: source, interval: interval, done: make(chan struct{})}
	}
}

// A follower polls an override source for a limiter.
type follower struct {
	source   OverrideSource
	interval time.Duration
	stop     context.CancelFunc
	done     chan struct{} // closed when it has ended

	failed   error // the last reported error, nil after a success
	reported time.Time
	unmet    unmet
}

// start polls the source in a goroutine of its own. It returns after the first
// answer, or firstOverrides.
func (f *follower) start(l *Limiter) {
	l.overrides.Store(newOverrideSet(Overrides{}, nil))
	if l.cap != nil {
		l.overrides.Load().effective(l, l.cap.rule)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	first := make(chan struct{})
	go func() {
		defer close(f.done)
		f.poll(ctx, l)
		close(first)
		tick := time.NewTicker(f.interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f.poll(ctx, l)
			case <-ctx.Done():
				return
			}
		}
	}()
	timer := time.NewTimer(firstOverrides)
	defer timer.Stop()
	select {
	case <-first:
	case <-timer.C:
	}
}

// poll asks the source once, and puts its overrides in force. A panic in an error
// of the source's is contained, too.
func (f *follower) poll(ctx context.Context, l *Limiter) {
	defer l.events.contain(inSource)
	allowed := max(f.interval, time.Second)
	asking, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	late := time.AfterFunc(allowed+sourceGrace, func() { l.overridesFailed(errSourceHangs) })
	o, err := f.ask(asking, l)
	err = private.Hide(err)
	told := !late.Stop() || f.failed != nil
	if ctx.Err() != nil {
		return // closed meanwhile
	}
	if last := (*stale.Error)(nil); err == nil || errors.As(err, &last) {
		if wrong := l.override(o, err == nil && told); wrong != nil {
			err = stale.Invalid(wrong)
		}
	}
	if err != nil {
		f.report(l, err)
		return
	}
	f.failed = nil
	f.unmet.check(l)
}

func (f *follower) ask(ctx context.Context, l *Limiter) (o Overrides, err error) {
	defer func() {
		if value := recover(); value != nil {
			l.events.panicked(inSource, value)
			err = private.Errorf("the override source has panicked: %s", private.TextOfPanic(value))
		}
	}()
	return f.source.Overrides(ctx)
}

// report reports an error, but the same error only once a minute. Failures of
// the network are the same if their class is, whatever ports they name.
func (f *follower) report(l *Limiter, err error) {
	if last := f.failed; last != nil && time.Since(f.reported) < reportAgain {
		class := ClassOf(err)
		if err.Error() == last.Error() || class != ClassOther && class == ClassOf(last) {
			return
		}
	}
	f.failed, f.reported = err, time.Now()
	l.overridesFailed(err)
}

// override puts overrides in force if they differ from those that are, are valid,
// and fit every rule that the limiter knows. It reports them if they differ, or if
// it is to report them again.
func (l *Limiter) override(o Overrides, again bool) error {
	current := l.overrides.Load()
	keys, err := current.keysOf(o)
	if err != nil {
		return err
	}
	o = o.clone() // the source may go on to change what it holds
	if reflect.DeepEqual(current.Overrides, o) && maps.Equal(current.keys, keys) {
		if again {
			l.overridesInForce(current)
		}
		return nil
	}
	if err := o.check(); err != nil {
		return err
	}
	next, err := current.next(o, keys)
	if err != nil {
		return err
	}
	l.overrides.Store(next)
	current.until = instant()
	close(current.replaced)
	l.plans.Clear()
	l.overridesInForce(next)
	return nil
}

// overridesInForce reports the overrides in force.
func (l *Limiter) overridesInForce(s *overrideSet) {
	l.events.log.Write(slog.LevelInfo, "overrides of rate limits are in force", 0,
		slog.Bool("enabled", s.enabled()), slog.Int("overridden", len(s.Rules)), slog.Any("rules", firstNames(s.Rules)))
	l.events.override(OverrideEvent{Rules: len(s.Rules), Enabled: s.enabled()})
}

// overridesFailed reports why overrides do not come into force: they are rejected, or
// could not be read.
func (l *Limiter) overridesFailed(err error) {
	what := "cannot be read"
	if errors.Is(err, ErrInvalidOverrides) {
		what = "rejected"
	}
	l.events.warn("overrides of rate limits "+what+", the last good ones stay in force", slog.Any("error", err))
	s := l.overrides.Load()
	l.events.override(OverrideEvent{Rules: len(s.Rules), Enabled: s.enabled(), Err: err})
}

// close ends the polling. A nil follower polls nothing.
func (f *follower) close() error {
	if f == nil {
		return nil
	}
	f.stop()
	if !clock.Await(f.done, sourceGrace) {
		return errSourceHangs
	}
	return nil
}
