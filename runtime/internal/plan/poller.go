package plan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/private"
)

const (
	// firstAnswer is how long Start waits for the first answer, so that a limit which is
	// switched off stays off when a program starts.
	firstAnswer = 100 * time.Millisecond
	// sourceGrace is how long a source may go on when its context has ended.
	sourceGrace = time.Second
	// reportAgain is how often one and the same error is reported again.
	reportAgain = time.Minute
	// unmetDelay is how long a name may be overridden without a call before it is reported.
	unmetDelay = time.Minute
)

var errSourceHangs = private.New("the override source goes on after its context has ended")

// A Poller polls a source. Its functions are called by one goroutine, but for Failed, which
// is safe for concurrent use.
type Poller[T any] struct {
	Interval time.Duration
	// Read reads the source. An error that is a [private.Stale] comes with a value.
	Read func(ctx context.Context) (T, error)
	// Apply puts a value in force. It is not fresh if the source could not be read, or what it
	// says is wrong. After Failed a fresh one is to be reported even if it is in force already.
	Apply func(value T, fresh, recovered bool) error
	// Failed reports why no value came into force.
	Failed func(error)
	// Same reports whether two errors are one to a reader, whatever their texts are.
	Same func(a, b error) bool
	// Panicked reports a panic of the source, or of an error of its.
	Panicked func(value any)

	stop     context.CancelFunc
	done     chan struct{} // closed when it has ended
	failed   error         // the last reported error, nil after a success
	reported time.Time
}

// Start begins to poll, in a goroutine of its own. It returns after the first answer, or
// a tenth of a second, and reports whether there was one.
func (p *Poller[T]) Start() (answers bool) {
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.done = make(chan struct{})
	answered := make(chan struct{})
	go func() {
		defer close(p.done)
		p.poll(ctx)
		close(answered)
		tick := time.NewTicker(p.Interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.poll(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return clock.Await(answered, firstAnswer)
}

// poll reads the source once, and puts its value in force.
func (p *Poller[T]) poll(ctx context.Context) {
	defer func() {
		if value := recover(); value != nil {
			p.Panicked(value)
		}
	}()
	allowed := max(p.Interval, time.Second)
	asking, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	late := time.AfterFunc(allowed+sourceGrace, func() { p.Failed(errSourceHangs) })
	value, err := p.read(asking)
	err = private.Hide(err)
	reported := !late.Stop() || p.failed != nil
	if ctx.Err() != nil {
		return // closed meanwhile
	}
	if last := (*private.Stale)(nil); err == nil || errors.As(err, &last) {
		err = cmp.Or(p.Apply(value, err == nil, reported), err)
	}
	if err == nil {
		p.failed = nil
	} else if p.failed == nil || time.Since(p.reported) >= reportAgain ||
		err.Error() != p.failed.Error() && !p.Same(err, p.failed) {
		p.failed, p.reported = err, time.Now()
		p.Failed(err)
	}
}

func (p *Poller[T]) read(ctx context.Context) (value T, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			p.Panicked(panicked)
			err = private.Errorf("the override source has panicked: %s", private.TextOfPanic(panicked))
		}
	}()
	return p.Read(ctx)
}

// Close ends the polling. It returns an error if the source goes on for a second. A nil
// Poller polls nothing.
func (p *Poller[T]) Close() error {
	if p == nil {
		return nil
	}
	p.stop()
	if !clock.Await(p.done, sourceGrace) {
		return errSourceHangs
	}
	return nil
}

// Unmet records since when names are overridden, to report those that no call uses. A misspelt
// name has no effect that would show it.
type Unmet struct{ startTimes map[string]time.Time }

// Due returns those of the overridden names that have been so for a minute. The names are in
// order.
func (u *Unmet) Due(names []string) (due []string) {
	maps.DeleteFunc(u.startTimes, func(name string, _ time.Time) bool {
		_, is := slices.BinarySearch(names, name)
		return !is
	})
	if u.startTimes == nil {
		u.startTimes = make(map[string]time.Time)
	}
	for _, name := range names {
		if since, is := u.startTimes[name]; !is {
			u.startTimes[name] = time.Now()
		} else if time.Since(since) >= unmetDelay {
			due = append(due, name)
		}
	}
	return due
}
