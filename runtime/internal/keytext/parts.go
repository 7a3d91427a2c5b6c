package keytext

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/rategen/rategen/internal/spec"
)

// Inline is how many bytes of [Parts] need no heap. Ids, addresses and tuples of them
// fit. Parts so take a multiple of 16 bytes, which is how many are copied at a time.
const Inline = 102

// Parts are the parts of a key, escaped and joined by colons. They are a plain value: a
// copy grows on its own.
type Parts struct {
	rare   *rare // nil as long as the parts fit inline, are valid and not empty, and there is no tenant
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

	divided bool   // there is a tenant: its name ends inline, and then its length and weight
	tenant  []byte // its name, if that does not fit inline
}

// emptyPart is what parts have of which one is empty, and that are like others else.
var emptyPart = &rare{empty: true}

// AddString adds a part, and escapes it.
func (p *Parts) AddString(s string) {
	p.separate()
	// Less 1, an empty string is longer than any.
	if p.rare != nil || uint(len(s)-1) >= uint(Inline-int(p.n)) || !ordinary(s) && Longer(s) != 0 {
		addEscaped(p, s)
		return
	}
	p.n = uint8(len(append(p.inline[:p.n], s...)))
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

// ErrInvalid is the error of parts that cannot be built, and of a text that no parts have.
var ErrInvalid = errors.New("invalid rate limit key")

// AddInvalid adds a part that cannot be built for a reason. The first reason stays.
func (p *Parts) AddInvalid(reason string) {
	if p.Err() == nil {
		p.Fail(fmt.Errorf("%w: %s", ErrInvalid, reason))
	}
	p.separate()
	p.write([]byte(invalid))
}

// ParsedParts returns parts that stand in a key like this.
func ParsedParts(text string) (p Parts) {
	p.write([]byte(text))
	p.count = 1
	return p
}

// Fail makes parts that were read again ones that could not be built.
func (p *Parts) Fail(err error) { p.rare = p.withRare(err, p.spill(), p.HasEmpty()) }

// withRare returns a copy of what few parts have, with other values.
func (p *Parts) withRare(err error, spill []byte, empty bool) *rare {
	r := rare{err: err, spill: spill, empty: empty}
	if p.rare != nil {
		r.divided, r.tenant = p.rare.divided, p.rare.tenant
	}
	return &r
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

// Plain returns the bytes, and reports whether the parts are like most: inline, valid,
// not empty and without a tenant.
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
	p.rare = p.withRare(p.Err(), append(p.grown(len(b)), b...), p.HasEmpty())
}

// fits reports whether n more bytes fit inline.
func (p *Parts) fits(n int) bool {
	if p.rare == nil {
		return int(p.n)+n <= Inline
	}
	return int(p.n)+n <= p.beforeTenant() && p.rare.spill == nil
}

func (p *Parts) grown(n int) []byte {
	old := p.Bytes()
	return append(make([]byte, 0, len(old)+n), old...)
}

func addEscaped[T string | []byte](p *Parts, s T) {
	extra := Longer(s)
	size := len(s) + extra
	switch {
	case size == 0 && p.rare == nil:
		p.rare = emptyPart
	case size == 0:
		p.rare = p.withRare(p.Err(), p.spill(), true)
	case !p.fits(size):
		p.rare = p.withRare(p.Err(), spec.AppendEscaped(p.grown(size), s), p.HasEmpty())
	case extra == 0:
		p.n += uint8(copy(p.inline[p.n:], s))
	default:
		p.n += uint8(len(spec.AppendEscaped(p.inline[p.n:p.n], s)))
	}
}

// ordinary reports that nothing in a part is escaped. It looks at eight bytes at a time,
// and may be false for a part all the same.
func ordinary(s string) bool {
	found := uint64(0)
	for len(s) > 8 {
		found |= special(eight(s))
		s = s[8:]
	}
	if len(s) == 8 {
		found |= special(eight(s))
	} else if len(s) >= 4 {
		found |= special(uint64(four(s)) | uint64(four(s[len(s)-4:]))<<32)
	} else {
		for i := range len(s) {
			found |= uint64(longer[s[i]])
		}
	}
	return found == 0
}

// special returns 0 if none of eight bytes is below '&', is ':' or is above 'z'. Those
// are all that are escaped, and some more. See Warren, Hacker's Delight, 6-1, for the sums.
func special(w uint64) uint64 {
	const each, high = 0x0101010101010101, 0x8080808080808080
	colons := w ^ ':'*each
	return ((w-'&'*each)&^w | (colons-each)&^colons | (w + (0x7f-'z')*each) | w) & high
}

func four(s string) uint32 {
	_ = s[3] // one check of bounds for all
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func eight(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Longer returns how many bytes longer a part is once it is escaped.
func Longer[T string | []byte](part T) (bytes int) {
	for i := 0; i < len(part); i++ {
		bytes += int(longer[part[i]])
	}
	return bytes
}

// longer holds how many bytes longer each byte of a part is in a key.
var longer = func() (longer [256]uint8) {
	for c := range longer {
		if spec.IsEscaped(byte(c)) {
			longer[c] = 2
		}
	}
	return longer
}()
