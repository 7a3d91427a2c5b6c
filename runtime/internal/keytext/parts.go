package keytext

import (
	"strconv"

	"github.com/rategen/rategen/internal/spec"
)

// Inline is how many bytes of [Parts] need no heap. Ids, addresses and tuples of them
// fit. Parts so take a multiple of 16 bytes, which is how many are copied at a time.
const Inline = 102

// Parts are the parts of a key, escaped and joined by colons. They are a plain value: a
// copy grows on its own.
type Parts struct {
	rare   *rare // nil as long as the parts fit inline, are valid and not empty
	inline [Inline]byte
	n      uint8
	count  uint8
}

// A rare holds what few keys have. It is kept apart, so that the others are quick to
// copy. Copies share it, so it never changes.
type rare struct {
	err   error
	spill []byte // all bytes, once they do not fit inline
	empty bool   // a part is empty
}

// emptyPart is what parts have of which one is empty, and that are like others else.
var emptyPart = &rare{empty: true}

// AddString adds a part, and escapes it.
func (p *Parts) AddString(s string) {
	p.separate()
	// Less 1, an empty string is longer than any.
	if p.rare != nil || uint(len(s)-1) >= uint(Inline-int(p.n)) || Longer(s) != 0 {
		addEscaped(p, s)
		return
	}
	p.n += uint8(copy(p.inline[p.n:], s))
}

// AddBytes is AddString for bytes.
func (p *Parts) AddBytes(b []byte) {
	p.separate()
	addEscaped(p, b)
}

// AddInt adds a part in decimal.
func (p *Parts) AddInt(n int64) {
	var digits [20]byte
	p.separate()
	p.write(strconv.AppendInt(digits[:0], n, 10))
}

// AddUint is AddInt for other numbers.
func (p *Parts) AddUint(n uint64) {
	var digits [20]byte
	p.separate()
	p.write(strconv.AppendUint(digits[:0], n, 10))
}

// AddInvalid adds a part that cannot be built. The first error stays.
func (p *Parts) AddInvalid(err error) {
	if p.Err() == nil {
		p.rare = &rare{err, p.spill(), p.HasEmpty()}
	}
	p.separate()
	p.write([]byte("%invalid")) // no part of a caller's can read like this
}

// ParsedParts returns parts that stand in a key like this.
func ParsedParts(text string) (p Parts) {
	p.write([]byte(text))
	p.count = 1
	return p
}

// Err returns why the parts cannot be built, or nil.
func (p *Parts) Err() error {
	if p.rare == nil {
		return nil
	}
	return p.rare.err
}

// HasEmpty reports whether a part is empty.
func (p *Parts) HasEmpty() bool { return p.rare != nil && p.rare.empty }

// Plain returns the bytes, and reports whether the parts are like most: inline, valid and
// not empty.
func (p *Parts) Plain() ([]byte, bool) { return p.inline[:p.n], p.rare == nil }

// Bytes returns the parts as they stand in a key.
func (p *Parts) Bytes() []byte {
	if spill := p.spill(); spill != nil {
		return spill
	}
	return p.inline[:p.n]
}

func (p *Parts) spill() []byte {
	if p.rare == nil {
		return nil
	}
	return p.rare.spill
}

func (p *Parts) separate() {
	if p.count > 0 {
		p.write([]byte{':'})
	}
	// Only "none yet" and "some" matter, so the count must not wrap.
	if p.count < 255 {
		p.count++
	}
}

func (p *Parts) write(b []byte) {
	if p.fits(len(b)) {
		p.n += uint8(copy(p.inline[p.n:], b))
		return
	}
	p.rare = &rare{p.Err(), append(p.grown(len(b)), b...), p.HasEmpty()}
}

// fits reports whether n more bytes fit inline.
func (p *Parts) fits(n int) bool { return int(p.n)+n <= Inline && p.spill() == nil }

// grown returns a copy of the bytes with room for n more.
func (p *Parts) grown(n int) []byte {
	old := p.Bytes()
	return append(make([]byte, 0, len(old)+n), old...)
}

func addEscaped[T string | []byte](p *Parts, s T) {
	extra := Longer(s)
	switch size := len(s) + extra; {
	case size == 0 && p.rare == nil:
		p.rare = emptyPart
	case size == 0:
		p.rare = &rare{p.Err(), p.spill(), true}
	case !p.fits(size):
		p.rare = &rare{p.Err(), spec.AppendEscaped(p.grown(size), s), p.HasEmpty()}
	case extra == 0:
		p.n += uint8(copy(p.inline[p.n:], s))
	default:
		p.n += uint8(len(spec.AppendEscaped(p.inline[p.n:p.n], s)))
	}
}
