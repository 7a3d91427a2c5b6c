package terms

import "github.com/rategen/rategen/runtime/internal/keytext"

// A Label is what stands on a charge for those who tell a person about it, and what its
// key is made of. Nothing is decided by it.
type Label struct {
	Name  string // of the rule
	Start string // of the rule's keys: namespace and prefix
	Tag   string // ends them
}

// MaxKey is the longest key in bytes. A longer one is cut to its start and a hash, so that no caller decides how much memory a key takes.
const MaxKey = 200

// AppendKey appends the whole key of a call with the given parts.
//
// A % followed by anything but two hexadecimal digits cannot come out of a part, so
// neither the tag, which keeps the keys of different algorithms apart, nor a hash can be
// imitated by a caller.
func (l *Label) AppendKey(dst, parts []byte) []byte {
	dst = append(dst, l.Start...)
	if len(l.Start)+len(parts)+len(l.Tag) <= MaxKey {
		dst = append(dst, parts...)
	} else {
		dst = keytext.AppendHash(dst, parts)
	}
	return append(dst, l.Tag...)
}

// ShortKey is the longest key that fits an array of [Label.KeyIn].
const ShortKey = 144

// Fits reports whether the key of parts of a length fits an array.
func (l *Label) Fits(parts int) bool { return len(l.Start)+parts+len(l.Tag) <= ShortKey }

// KeyIn is AppendKey for a key that fits an array, which may be on its caller's stack. It
// takes half the time.
func (l *Label) KeyIn(array *[ShortKey]byte, parts []byte) []byte {
	n := copy(array[:], l.Start)
	n += copy(array[n:], parts)
	if l.Tag != "" {
		n += copy(array[n:], l.Tag)
	}
	return array[:n]
}

// Parts returns what a key has between its start and its tag.
func (l *Label) Parts(key []byte) []byte {
	if end := len(key) - len(l.Tag); len(l.Start) <= end {
		return key[len(l.Start):end]
	}
	return nil // not a key of the rule's
}
