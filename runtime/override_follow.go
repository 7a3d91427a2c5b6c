package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// DefaultOverrideInterval is how often overrides are looked up by default.
const DefaultOverrideInterval = time.Second

const (
	// firstOverrides is how long [New] waits for the first overrides, so that
	// a limit which is switched off stays off when a program starts.
	firstOverrides = 100 * time.Millisecond
	// sourceGrace is how long a source may go on when its context has ended, and
	// a scaler when the limiter is closed.
	sourceGrace = time.Second
	// complainAgain is how often one and the same complaint is repeated.
	complainAgain = time.Minute
)

var errSourceHangs = errors.New("the override source goes on after its context has ended")

// WithOverrides changes rules while the program runs: source is asked at once
// and then at every interval, 0 standing for [DefaultOverrideInterval]. What it
// says holds for the calls that come after, all of it or, if any of it makes no
// sense or fits a rule that has been met badly, nothing. What fits a rule badly
// that is met only later leaves that rule as it was declared. Whatever is not
// taken over is reported, once and then every minute that it stays so.
//
// [New] waits for the first answer for at most 100 ms; until there is one,
// rules are as declared. [Limiter.Close] ends the asking.
func WithOverrides(source OverrideSource, interval time.Duration) Option {
	return func(l *Limiter) {
		if interval <= 0 {
			interval = DefaultOverrideInterval
		}
		l.follow = &follower{source: source, interval: interval, done: make(chan struct{})}
	}
}

// A follower keeps the overrides of a limiter as its source says.
type follower struct {
	source   OverrideSource
	interval time.Duration
	stop     context.CancelFunc
	done     chan struct{} // closed when it has ended

	complaint error // the last one, nil if all is well since
	since     time.Time
	unmet     unmet
}

// start follows the source in a goroutine of its own, and returns when it was
// asked once.
func (f *follower) start(l *Limiter) {
	l.overrides.Store(new(ruling))
	if l.cap != nil {
		l.overrides.Load().of(l, l.cap.rule)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	first := make(chan struct{})
	go func() {
		defer close(f.done)
		f.look(ctx, l)
		close(first)
		tick := time.NewTicker(f.interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f.look(ctx, l)
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

// look asks the source once, and puts in force what it says.
func (f *follower) look(ctx context.Context, l *Limiter) {
	allowed := max(f.interval, time.Second)
	asking, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	late := time.AfterFunc(allowed+sourceGrace, func() { l.refused(errSourceHangs) })
	o, err := f.ask(asking, l)
	late.Stop()
	if ctx.Err() != nil {
		return // closed meanwhile
	}
	if err == nil {
		err = l.override(o, f.complaint != nil)
	}
	if err != nil {
		f.complain(l, err)
		return
	}
	f.complaint = nil
	f.unmet.look(l)
}

func (f *follower) ask(ctx context.Context, l *Limiter) (o Overrides, err error) {
	defer func() {
		if value := recover(); value != nil {
			l.events.panicked("override source", value)
			err = fmt.Errorf("the override source has panicked: %v", value)
		}
	}()
	return f.source.Overrides(ctx)
}

// complain reports an error unless it is the one before, but for once a minute.
// A failure of the network is taken for the same as the one before, whatever
// ports it names.
func (f *follower) complain(l *Limiter, err error) {
	if last := f.complaint; last != nil && time.Since(f.since) < complainAgain {
		class := ClassOf(err)
		if err.Error() == last.Error() || class != ClassOther && class == ClassOf(last) {
			return
		}
	}
	f.complaint, f.since = err, time.Now()
	l.refused(err)
}

// override puts overrides in force if they are others than those that are, fit
// every rule that the limiter has met, and make sense. It says so if they are
// others, or if it is to say so again.
func (l *Limiter) override(o Overrides, again bool) error {
	o = o.clone() // the source may go on to change what it holds
	old := l.overrides.Load()
	if reflect.DeepEqual(old.Overrides, o) {
		if again {
			l.inForce(old)
		}
		return nil
	}
	if err := o.check(); err != nil {
		return err
	}
	next, err := old.after(o)
	if err != nil {
		return err
	}
	l.overrides.Store(next)
	l.inForce(next)
	return nil
}

// inForce reports which overrides hold.
func (l *Limiter) inForce(r *ruling) {
	l.events.log.write(slog.LevelInfo, "overrides of rate limits are in force", 0,
		slog.Bool("enabled", r.enabled()), slog.Int("overridden", len(r.Rules)), slog.Any("rules", some(r.Rules)))
	l.events.override(OverrideEvent{Rules: len(r.Rules), Enabled: r.enabled()})
}

// refused reports overrides that do not come into force.
func (l *Limiter) refused(err error) {
	l.events.warn("overrides of rate limits refused, the last good ones stay in force", slog.Any("error", err))
	o := l.overrides.Load()
	l.events.override(OverrideEvent{Rules: len(o.Rules), Enabled: o.enabled(), Err: err})
}

// Close ends what the limiter has started, the following of overrides and of
// what adaptive rules adapt to, and returns when it has ended. Calls go on to be
// decided, with the overrides and factors as they are. The store stays open. The
// error is non-nil if and only if the override source still runs a second after
// its context has ended, or a [Scaler] after another second. To close again is
// to wait for the same; a nil Limiter has started nothing.
func (l *Limiter) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.follow.close(), l.scaling.close())
}

// close ends the following. A nil follower follows nothing.
func (f *follower) close() error {
	if f == nil {
		return nil
	}
	f.stop()
	return await(f.done, errSourceHangs)
}

// await waits for a function that the limiter was given, but not for one that
// never returns: the error says so then.
func await(done <-chan struct{}, hangs error) error {
	timer := time.NewTimer(sourceGrace)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return hangs
	}
}
