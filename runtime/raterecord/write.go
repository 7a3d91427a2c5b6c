package raterecord

import (
	"time"

	"github.com/rategen/rategen/internal/record"
	"github.com/rategen/rategen/runtime"
)

// A sink is where blocks go.
type sink interface {
	open(name string, maxBytes int64) error
	write(block []byte) error
	close() error
}

// A ruleKey is what the text of a rule is found by.
type ruleKey struct {
	rule, declared *runtime.Rule
	zone           string
	anchor         int
}

// maxTexts is how many texts of rules the writer remembers.
const maxTexts = 4096

// A writer empties the queue.
type writer struct {
	*Recorder
	to     sink
	blocks *record.Writer
	texts  map[ruleKey]string // empty: it cannot be recorded
	limits []record.NamedLimit
	failed error // the first one
	seen   time.Time
	steps  uint64 // of the clock, back
}

// stepBack is by how much a clock is set back at least to be told of.
const stepBack = 100 * time.Millisecond

func newWriter(r *Recorder, to sink, name string) *writer {
	meta := record.Meta{Recording: name, Secret: r.names.id, Share: r.share}
	return &writer{Recorder: r, to: to, blocks: record.NewWriter(meta), texts: map[ruleKey]string{}}
}

// run writes events until the queue is closed and empty. It sleeps while there are none.
func (w *writer) run() {
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	for {
		due := false
		select {
		case <-timer.C:
			due = true
		case <-w.queue.wake:
		}
		ended := w.queue.closed.Load()
		if !due && w.queue.woken() {
			timer.Reset(flushEvery)
		}
		w.drain()
		if due || ended {
			w.flush()
		}
		if ended {
			w.fail(w.to.close())
			return
		}
		if due && !w.queue.sleep() {
			timer.Reset(flushEvery)
		}
	}
}

// drain writes the events that are in the queue. Their times are those of the clock as it is set by
// now.
func (w *writer) drain() {
	began := w.began.UnixNano()
	if !w.virtual {
		now := w.now()
		began = now.UnixNano() - int64(now.Sub(w.began))
	}
	defer w.queue.free()
	for s := w.queue.next(); s != nil; s = w.queue.next() {
		n := int(s.limits)
		if !w.queue.ready(n) {
			return // they are being filled
		}
		w.event(s, n, began)
		if w.blocks.Full() {
			w.flush()
		}
	}
}

// event adds an event of a recorder that began at a time in nanoseconds. Its limits are in n slots.
func (w *writer) event(first *slot, n int, began int64) {
	ev := record.Event{Settles: first.settles, Time: (began + int64(first.at)) / 1000, Waited: first.waited, Label: first.label,
		Partial: first.partial && !first.settles}
	w.limits = w.limits[:0]
	for range n {
		s := w.queue.next()
		l := record.NamedLimit{Caller: w.names.caller(s.key[:s.keyLen]), RuleMax: s.rule.Max,
			RuleText: w.text(ruleKey{s.rule, s.base, s.zone, s.anchor})}
		l.Verdict, l.Source, l.Cost, l.Max, l.Charged = s.verdict, s.source, s.cost, s.max, s.charged
		if l.Weight = s.weight; l.Weight != 0 {
			l.Share = w.names.caller(s.key[s.keyLen : s.keyLen+s.share])
		}
		if s.settles {
			l.Settled = s.settled
		} else {
			l.Wait = s.wait
		}
		if l.RuleText == "" {
			ev.Partial = true
		} else {
			w.limits = append(w.limits, l)
		}
		w.queue.pass()
	}
	if len(w.limits) > 0 {
		w.blocks.Add(&ev, w.limits)
	}
}

// text returns a rule as records have it, or nothing if it does not fit there.
func (w *writer) text(k ruleKey) string {
	text, known := w.texts[k]
	if !known {
		if len(w.texts) == maxTexts {
			clear(w.texts)
		}
		if b, err := record.RuleText(k.rule, k.declared, k.zone, k.anchor); err == nil {
			text = string(b)
		}
		w.texts[k] = text
	}
	return text
}

// flush writes the block.
func (w *writer) flush() {
	now := w.now()
	passed := now.Sub(w.seen) // by a clock that nobody sets, if it is that of the process
	if apart := now.Round(0).Sub(w.seen.Round(0)); !w.seen.IsZero() && apart < max(passed, 0)-stepBack {
		w.steps++
	}
	w.seen = now
	block, events := w.blocks.Take(w.queue.dropped.Load(), w.steps)
	if block == nil {
		return
	}
	if err := w.to.write(block); err != nil {
		w.fail(err)
		w.queue.dropped.Add(uint64(events))
	}
}

func (w *writer) fail(err error) {
	if w.failed == nil {
		w.failed = err
	}
}
