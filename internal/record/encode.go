package record

import (
	"encoding/binary"
	"encoding/json"
)

// A Writer puts events into blocks. It is for one goroutine.
type Writer struct {
	meta    Meta
	buf     []byte // the events of the block
	last    int64  // the time of the last one
	events  int
	rules   map[string]uint64 // by their texts
	callers map[Caller]uint64
	labels  map[string]uint64
	out     []byte
}

// A Named limit is a [Limit] whose rule and caller are written in full.
type NamedLimit struct {
	Limit
	RuleText string // of [RuleText]
	RuleMax  int64
	Caller   Caller
	Share    Caller
}

// NewWriter returns a writer of the blocks of a recording.
func NewWriter(m Meta) *Writer {
	m.Version = Version
	return &Writer{meta: m, rules: map[string]uint64{}, callers: map[Caller]uint64{}, labels: map[string]uint64{}}
}

// Full reports whether the block has as much as a block should have.
func (w *Writer) Full() bool { return len(w.buf) >= fullBlock }

// Add adds an event, whose limits are those given.
func (w *Writer) Add(ev *Event, limits []NamedLimit) {
	if w.events == 0 {
		w.meta.Time, w.last = ev.Time, ev.Time
	}
	w.events++
	kind := byte(kindCall)
	if ev.Settles {
		kind = kindSettlement
	}
	w.buf = append(w.buf, kind)
	w.buf = binary.AppendVarint(w.buf, ev.Time-w.last)
	w.last = ev.Time
	if !ev.Settles {
		w.buf = binary.AppendUvarint(w.buf, uint64(ev.Waited))
		w.label(ev.Label)
		partial := byte(0)
		if ev.Partial {
			partial = 1
		}
		w.buf = append(w.buf, partial)
	}
	w.buf = append(w.buf, byte(len(limits)))
	for i := range limits {
		w.limit(ev, &limits[i])
	}
}

func (w *Writer) limit(ev *Event, l *NamedLimit) {
	n, known := w.rules[l.RuleText]
	if !known {
		w.rules[l.RuleText] = uint64(len(w.rules) + 1)
		w.buf = binary.AppendUvarint(append(w.buf, 0), uint64(len(l.RuleText)))
		w.buf = append(w.buf, l.RuleText...)
	} else {
		w.buf = binary.AppendUvarint(w.buf, n)
	}
	w.caller(l.Caller)
	if ev.Settles {
		w.buf = binary.AppendVarint(w.buf, l.Charged-ev.Time)
		w.buf = binary.AppendUvarint(w.buf, uint64(l.Cost))
		w.buf = binary.AppendUvarint(w.buf, uint64(l.Settled))
		w.buf = binary.AppendUvarint(w.buf, uint64(l.Max))
		w.buf = binary.AppendUvarint(w.buf, uint64(l.Weight))
		if l.Weight != 0 {
			w.caller(l.Share)
		}
		return
	}
	flags := byte(0)
	if l.Max != l.RuleMax {
		flags |= flagMax
	}
	if l.Wait != 0 {
		flags |= flagWait
	}
	if l.Charged != 0 {
		flags |= flagCharged
	}
	if l.Weight != 0 {
		flags |= flagShare
	}
	w.buf = append(w.buf, byte(l.Verdict)|byte(l.Source)<<3, flags)
	w.buf = binary.AppendUvarint(w.buf, uint64(l.Cost))
	if flags&flagMax != 0 {
		w.buf = binary.AppendUvarint(w.buf, uint64(l.Max))
	}
	if flags&flagWait != 0 {
		w.buf = binary.AppendUvarint(w.buf, uint64(l.Wait))
	}
	if flags&flagCharged != 0 {
		w.buf = binary.AppendVarint(w.buf, l.Charged-ev.Time)
	}
	if flags&flagShare != 0 {
		w.buf = binary.AppendUvarint(w.buf, uint64(l.Weight))
		w.caller(l.Share)
	}
}

func (w *Writer) caller(c Caller) {
	n, known := w.callers[c]
	if known {
		w.buf = binary.AppendUvarint(w.buf, n)
		return
	}
	w.callers[c] = uint64(len(w.callers) + 1)
	w.buf = append(append(w.buf, 0), c[:]...)
}

func (w *Writer) label(label string) {
	if label == "" {
		w.buf = binary.AppendUvarint(w.buf, 1)
		return
	}
	if n, known := w.labels[label]; known {
		w.buf = binary.AppendUvarint(w.buf, n)
		return
	}
	w.labels[label] = uint64(len(w.labels) + 2)
	w.buf = append(w.buf, 0, byte(len(label)))
	w.buf = append(w.buf, label...)
}

// Take returns the block, which is valid until the next event is added, and how many events it
// has, and begins another block. Dropped is how many events were lost so far, and steps how often the clock was set back. It returns nil if
// there are no events.
func (w *Writer) Take(dropped, steps uint64) (block []byte, events int) {
	if w.events == 0 {
		return nil, 0
	}
	w.meta.Block++
	w.meta.Dropped, w.meta.Steps = dropped, steps
	meta, _ := json.Marshal(w.meta) // has no value that JSON has not
	w.out = append(w.out[:0], magic[:]...)
	w.out = append(w.out, 0, 0, 0, 0, 0, 0, 0, 0)
	w.out = binary.AppendUvarint(w.out, uint64(len(meta)))
	w.out = append(append(w.out, meta...), w.buf...)
	payload := w.out[headerSize:]
	binary.LittleEndian.PutUint32(w.out[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(w.out[8:], crc(payload))
	events, w.events, w.buf = w.events, 0, w.buf[:0]
	clear(w.rules)
	clear(w.callers)
	clear(w.labels)
	return w.out, events
}
