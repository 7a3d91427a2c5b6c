package plan

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"

	"github.com/rategen/rategen/runtime/internal/keytext"
)

// Unfit returns how many patterns can be of no key like that of a call: they have another number
// of parts, or an address that is written in another way than the one in its place.
func (k *KeyOverrides) Unfit(key []byte) (unfit int) {
	parts := 0
	if len(key) > 0 {
		parts = bytes.Count(key, []byte(":")) + 1
	}
	for p := range k.table.All() {
		if keytext.IsHash(p.Text) || keytext.IsHash(string(key)) {
			continue
		}
		if has := p.Parts(); has > parts || has < parts && !p.Prefix || !p.Prefix && otherAddress(p.Text, string(key)) {
			unfit++
		}
	}
	return unfit
}

// otherAddress reports whether two keys have addresses in one place that are written in
// different ways, so that no address is the other one.
func otherAddress(pattern, key string) bool {
	like := strings.Split(key, ":")
	for i, part := range strings.Split(pattern, ":") {
		if i < len(like) && addressForm(part).differs(addressForm(like[i])) {
			return true
		}
	}
	return false
}

// A form is how a part of a key is written.
type form uint8

const (
	otherForm form = iota
	address4
	address6
	network6
	unusualForm // no key is made so
)

// differs reports whether a part of a pattern is never what a part like f is.
func (f form) differs(like form) bool {
	switch like {
	case address4:
		return f == unusualForm
	case address6:
		return f == unusualForm || f == network6
	case network6:
		return f == unusualForm || f == address6
	}
	return false
}

func addressForm(part string) form {
	text, err := url.PathUnescape(part)
	if err != nil {
		return otherForm
	}
	if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is6() {
		if p.Masked().String() != text {
			return unusualForm
		}
		return network6
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return otherForm
	}
	if addr.Is4In6() || addr.Zone() != "" || addr.String() != text {
		return unusualForm
	}
	if addr.Is4() {
		return address4
	}
	return address6
}
