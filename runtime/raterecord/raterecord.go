// Package raterecord records what limits are asked: when, by which rule, for which caller, at
// which cost, and what was decided and settled. The command ratectl replays records, to tell what
// other limits would have done (ratectl plan), and which limit fits (ratectl propose).
//
//	recorder, err := raterecord.Files("/var/lib/orders/record", raterecord.WithSecret(secret))
//	limiter := runtime.New(store, runtime.WithObserver(recorder.Observer()))
//	defer recorder.Close() // after limiter.Close
//
// A record names no caller: it has a keyed hash of each key, of 128 bits. Equal secrets give
// equal callers equal names, in all processes. Without [WithSecret] the secret is random, and the
// callers of two processes cannot be told to be the same.
//
// A call never waits for the recording. It leaves its event in a buffer, which takes some 150
// nanoseconds and no memory; a goroutine writes it. What does not fit is dropped, and the record
// says how much that was. A process that dies loses the last second.
//
// Not recorded are limits that a call was decided without, such as one at a cost of 0, and what
// other programs do to keys: resets, and holds.
package raterecord

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rategen/rategen/runtime/observe"
)

// The defaults, and bounds, of the options.
const (
	DefaultMaxBytes = 256 << 20
	minMaxBytes     = 1 << 20
	DefaultBuffer   = 8192
	minSecret       = 16
	maxLabel        = 64
)

// flushEvery is how long an event is in memory at most before it is written.
const flushEvery = time.Second

// An Option configures a [Recorder].
type Option func(*Recorder) error

// WithSecret names callers by a secret, of 16 bytes at least, that the programs of a team share.
// Anyone who has the secret, and knows a caller's key, can tell whether the caller is in a record.
func WithSecret(secret []byte) Option {
	return func(r *Recorder) error {
		if len(secret) < minSecret {
			return fmt.Errorf("a secret has %d bytes at least, and this one %d", minSecret, len(secret))
		}
		r.names = newNaming(secret)
		return nil
	}
}

// WithShare records a share of the callers, above 0 and up to 1, each with all of its calls. Equal
// secrets choose equal callers. A rule without a key is recorded in full.
func WithShare(share float64) Option {
	return func(r *Recorder) error {
		if !(share > 0 && share <= 1) {
			return fmt.Errorf("a share of callers is above 0 and at most 1, and not %v", share)
		}
		r.share = share
		return nil
	}
}

// WithMaxBytes bounds how much [Files] keeps in its directory, the records of former processes
// included: the oldest are removed. The default is [DefaultMaxBytes], the least 1 MiB.
func WithMaxBytes(n int64) Option {
	return func(r *Recorder) error {
		if n < minMaxBytes {
			return fmt.Errorf("records need %d bytes at least, and not %d", minMaxBytes, n)
		}
		r.maxBytes = n
		return nil
	}
}

// WithLabel says a word of each call, such as a plan or a route, by which reports are divided. It
// is called on the path of every call that is recorded. A label has up to 64 bytes, the rest is
// cut; there should be few, and none that names a caller.
func WithLabel(label func(context.Context) string) Option {
	return func(r *Recorder) error {
		if label == nil {
			return errors.New("WithLabel has no function: leave it out")
		}
		r.label = label
		return nil
	}
}

// WithBuffer sets how many events wait for the writer at most, rounded up to a power of two. Each
// takes 368 bytes. The default is [DefaultBuffer].
func WithBuffer(events int) Option {
	return func(r *Recorder) error {
		if events < 1 || events > 1<<24 {
			return fmt.Errorf("a buffer holds from 1 to %d events, and not %d", 1<<24, events)
		}
		r.buffer = events
		return nil
	}
}

// WithClock has events bear the time of a clock in place of the process's: the one of
// [runtime.WithClock]. It must be safe for concurrent use.
func WithClock(now func() time.Time) Option {
	return func(r *Recorder) error {
		if now == nil {
			return errors.New("WithClock has no clock: leave it out")
		}
		r.now, r.virtual = now, true
		return nil
	}
}

// A Recorder records what limiters decide. It has a goroutine until [Recorder.Close].
type Recorder struct {
	share    float64
	maxBytes int64
	buffer   int
	label    func(context.Context) string
	now      func() time.Time
	began    time.Time // the times of events are counted from it
	virtual  bool      // now is the clock of WithClock
	names    *naming
	queue    *queue
	writer   *writer
	ended    chan struct{}
}

// Files records into files in a directory, which is made if there is none. Several processes may
// share it. The files of each end in .ratelog, and begin anew at an eighth of the bound. An error
// of writing loses what was to be written, is told by [Recorder.Close], and ends nothing.
func Files(dir string, opts ...Option) (*Recorder, error) {
	return start(&directory{path: dir}, opts)
}

// To records to a writer, which is called by one goroutine and may be slow.
func To(w io.Writer, opts ...Option) (*Recorder, error) { return start(plain{w}, opts) }

func start(to sink, opts []Option) (*Recorder, error) {
	r := &Recorder{share: 1, maxBytes: DefaultMaxBytes, buffer: DefaultBuffer, now: time.Now, ended: make(chan struct{})}
	for _, opt := range opts {
		if err := opt(r); err != nil {
			return nil, fmt.Errorf("raterecord: %w", err)
		}
	}
	if r.names == nil {
		var secret [32]byte
		_, _ = rand.Read(secret[:])
		r.names = newNaming(secret[:])
	}
	r.names.choose(r.share)
	r.began = r.now()
	name := r.began.UTC().Format("20060102T150405Z") + "-" + rand.Text()[:10]
	if r.virtual { // which may go on by centuries
		r.began = time.Unix(0, 0)
	}
	if err := to.open(name, r.maxBytes); err != nil {
		return nil, fmt.Errorf("raterecord: %w", err)
	}
	r.queue = newQueue(r.buffer)
	r.writer = newWriter(r, to, name)
	go func() {
		defer close(r.ended)
		r.writer.run()
	}()
	return r, nil
}

// Observer returns the observer that records. Several limiters may have it.
func (r *Recorder) Observer() *observe.Observer {
	return &observe.Observer{Call: r.call, Settlement: r.settlement}
}

// Dropped returns how many events were lost so far, for want of room or by errors of writing.
func (r *Recorder) Dropped() uint64 { return r.queue.dropped.Load() }

// ErrClosed is the error of a second [Recorder.Close].
var ErrClosed = errors.New("raterecord: the recorder was closed before")

// Close writes what is left, and ends the recording. Later events are not recorded. The error is
// the first one of writing.
func (r *Recorder) Close() error {
	if !r.queue.close() {
		return ErrClosed
	}
	<-r.ended
	return r.writer.failed
}
