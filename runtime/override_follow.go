package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

// DefaultOverrideInterval is how often overrides are looked up by default.
const DefaultOverrideInterval = time.Second

// firstOverrides is how long [New] waits for the first overrides, so that a
// limit which is switched off stays off when a program starts.
const firstOverrides = 100 * time.Millisecond

// WithOverrides changes rules while the program runs: source is asked at once
// and then at every interval, 0 standing for [DefaultOverrideInterval]. What it
// says holds for the calls that come after, all of it or, if any of it makes no
// sense, nothing. [Limiter.Close] ends the asking.
func WithOverrides(source OverrideSource, interval time.Duration) Option {
	return func(l *Limiter) {
		if interval <= 0 {
			interval = DefaultOverrideInterval
		}
		l.follow = &follower{source: source, interval: interval}
	}
}

// A follower keeps the overrides of a limiter as its source says.
type follower struct {
	source   OverrideSource
	interval time.Duration
	stop     context.CancelFunc
	done     sync.WaitGroup

	complaint string // what was last refused
	since     time.Time
}

// start follows the source in a goroutine of its own, and returns when it was
// asked once.
func (f *follower) start(l *Limiter) {
	l.overrides.Store(new(ruling))
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	first := make(chan struct{})
	f.done.Go(func() {
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
	})
	timer := time.NewTimer(firstOverrides)
	defer timer.Stop()
	select {
	case <-first:
	case <-timer.C:
	}
}

// look asks the source once.
func (f *follower) look(ctx context.Context, l *Limiter) {
	ctx, cancel := context.WithTimeout(ctx, max(f.interval, time.Second))
	defer cancel()
	o, err := f.ask(ctx, l)
	if err == nil {
		err = l.rule(o)
	}
	switch {
	case err == nil:
		f.complaint = ""
	case ctx.Err() != context.Canceled && (err.Error() != f.complaint || time.Since(f.since) >= time.Minute):
		f.complaint, f.since = err.Error(), time.Now()
		l.refused(err)
	}
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

// rule puts overrides in force, if they are others than those that are and fit
// every rule that the limiter has met.
func (l *Limiter) rule(o Overrides) error {
	if len(o.Rules) == 0 {
		o.Rules = nil
	}
	old := l.overrides.Load()
	if reflect.DeepEqual(old.Overrides, o) {
		return nil
	}
	if err := o.check(); err != nil {
		return err
	}
	next := &ruling{Overrides: Overrides{o.Enabled, maps.Clone(o.Rules)}}
	var failed error
	old.rules.Range(func(key, _ any) bool {
		var holds ruled
		if holds, failed = next.rule(key.(*Rule)); failed == nil {
			next.rules.Store(key, holds)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	l.overrides.Store(next)
	names := slices.Sorted(maps.Keys(o.Rules))
	l.events.log.write(slog.LevelInfo, "rate limits are overridden", 0,
		slog.Bool("enabled", next.enabled()), slog.Any("rules", names))
	l.events.override(OverrideEvent{Rules: len(names)})
	return nil
}

// refused reports overrides that do not come into force.
func (l *Limiter) refused(err error) {
	l.events.warn("overrides of rate limits refused, the last good ones stay in force", slog.Any("error", err))
	l.events.override(OverrideEvent{Err: err})
}

func (r *ruling) enabled() bool { return r.Enabled == nil || *r.Enabled }

// Close ends what the limiter has started, the following of overrides and of
// what adaptive rules adapt to, and returns when it has ended. Calls go on to be
// decided, with the overrides and factors as they are. The store stays open.
func (l *Limiter) Close() error {
	if l == nil {
		return nil
	}
	if l.follow != nil {
		l.follow.stop()
		l.follow.done.Wait()
	}
	l.scaling.close()
	return nil
}
