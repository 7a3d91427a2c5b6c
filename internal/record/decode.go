package record

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/rategen/rategen/runtime/observe"
	rules "github.com/rategen/rategen/runtime/rule"
)

// errCorrupt is the error of a block that has a right checksum and no right content.
var errCorrupt = errors.New("the block is none that a recording writes")

// readMeta cuts the meta off a payload.
func readMeta(payload []byte) (m Meta, rest []byte, err error) {
	n, size := binary.Uvarint(payload)
	if size <= 0 || n > maxMeta || n > uint64(len(payload)-size) {
		return m, nil, errCorrupt
	}
	if json.Unmarshal(payload[size:size+int(n)], &m) != nil {
		return m, nil, errCorrupt
	}
	if m.Version != Version {
		return m, nil, fmt.Errorf("version %d of the format, and this reads %d", m.Version, Version)
	}
	if m.Recording == "" || len(m.Recording) > maxLabel || m.Block == 0 ||
		!(m.Share > 0 && m.Share <= 1) || !isTime(m.Time) {
		return m, nil, errCorrupt
	}
	return m, payload[size+int(n):], nil
}

// isTime reports whether a time is between 1970 and 2200, where no sum of times overflows.
func isTime(micros int64) bool { return micros >= 0 && micros < 230*366*86400*1e6 }

// A decoder reads the events of a block.
type decoder struct {
	names   *Names
	buf     []byte
	last    int64
	rules   []uint32 // of the block, as the reader numbers them
	callers []uint32
	labels  []string
	bad     bool
}

// begin begins with a payload.
func (d *decoder) begin(payload []byte) (Meta, error) {
	m, rest, err := readMeta(payload)
	d.buf, d.last, d.bad = rest, m.Time, false
	d.rules, d.callers, d.labels = d.rules[:0], d.callers[:0], d.labels[:0]
	return m, err
}

// next reads the next event, and reports false at the end of the block. Its limits are valid
// until the next one.
func (d *decoder) next(ev *Event) (ok bool, err error) {
	if len(d.buf) == 0 {
		return false, nil
	}
	kind := d.byte()
	limits := ev.Limits[:0]
	*ev = Event{Settles: kind == kindSettlement, Time: d.last + d.signed()}
	d.last = ev.Time
	d.bad = d.bad || kind != kindCall && kind != kindSettlement || !isTime(ev.Time)
	if !ev.Settles {
		ev.Waited = d.amount()
		ev.Label = d.label()
		ev.Partial = d.byte() != 0
	}
	n := d.byte()
	d.bad = d.bad || n == 0 || int(n) > rules.MaxLimits
	for range n {
		if d.bad {
			break
		}
		var l Limit
		if err := d.limit(ev, &l); err != nil {
			return false, err
		}
		limits = append(limits, l)
	}
	if d.bad {
		return false, errCorrupt
	}
	ev.Limits = limits
	return true, nil
}

func (d *decoder) limit(ev *Event, l *Limit) (err error) {
	if l.Rule, err = d.rule(); err != nil {
		return err
	}
	if l.Caller, err = d.caller(); err != nil || d.bad {
		return err
	}
	if ev.Settles {
		l.Charged, l.Cost, l.Settled, l.Max = ev.Time+d.signed(), d.amount(), d.amount(), d.amount()
		if l.Weight = d.weight(); l.Weight != 0 {
			l.Share, err = d.caller()
		}
		return err
	}
	b, flags := d.byte(), d.byte()
	l.Verdict, l.Source = observe.Verdict(b&7), rules.Source(b>>3)
	d.bad = d.bad || l.Verdict > observe.VerdictUnavailable || l.Source > rules.SourceLease
	l.Cost, l.Max = d.amount(), d.names.Rules[l.Rule].Rule.Max
	if flags&flagMax != 0 {
		l.Max = d.amount()
	}
	if flags&flagWait != 0 {
		l.Wait = d.amount()
	}
	if flags&flagCharged != 0 {
		l.Charged = ev.Time + d.signed()
	}
	if flags&flagShare != 0 {
		l.Weight = d.weight()
		l.Share, err = d.caller()
	}
	return err
}

// weight reads the weight of a share, or 0.
func (d *decoder) weight() int64 {
	n := d.number()
	if n > rules.MaxWeight {
		d.bad = true
		return 0
	}
	return int64(n)
}

// rule reads the number of a rule, or a rule, and gives it one.
func (d *decoder) rule() (uint32, error) {
	n := d.number()
	if n > 0 && n <= uint64(len(d.rules)) {
		return d.rules[n-1], nil
	}
	text := d.text(maxRule)
	if n != 0 || d.bad {
		d.bad = true
		return 0, nil
	}
	i, err := d.names.rule(text)
	d.rules = append(d.rules, i)
	return i, err
}

func (d *decoder) caller() (uint32, error) {
	n := d.number()
	if n > 0 && n <= uint64(len(d.callers)) {
		return d.callers[n-1], nil
	}
	var c Caller
	if n != 0 || len(d.buf) < len(c) {
		d.bad = true
		return 0, nil
	}
	copy(c[:], d.buf)
	d.buf = d.buf[len(c):]
	i, err := d.names.caller(c)
	d.callers = append(d.callers, i)
	return i, err
}

func (d *decoder) label() string {
	n := d.number()
	if n == 1 {
		return ""
	}
	if n == 0 {
		label := d.names.label(d.text(maxLabel))
		d.labels = append(d.labels, label)
		return label
	}
	if n-2 < uint64(len(d.labels)) {
		return d.labels[n-2]
	}
	d.bad = true
	return ""
}

func (d *decoder) text(most uint64) []byte {
	n := d.number()
	if d.bad || n > most || n > uint64(len(d.buf)) {
		d.bad = true
		return nil
	}
	text := d.buf[:n]
	d.buf = d.buf[n:]
	return text
}

func (d *decoder) byte() byte {
	if len(d.buf) == 0 {
		d.bad = true
		return 0
	}
	b := d.buf[0]
	d.buf = d.buf[1:]
	return b
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.buf)
	if size <= 0 {
		d.bad = true
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

// amount reads a number that no sum of some overflows with.
func (d *decoder) amount() int64 {
	n := d.number()
	if n > math.MaxInt64/4 {
		d.bad = true
		return 0
	}
	return int64(n)
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.buf)
	if size <= 0 || n > math.MaxInt64/4 || n < -math.MaxInt64/4 {
		d.bad = true
		return 0
	}
	d.buf = d.buf[size:]
	return n
}
