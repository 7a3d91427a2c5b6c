// Package ratefield writes the fields RateLimit-Policy and RateLimit, by which a
// server tells its clients about limits. Packages ratehttp and raterpc do so for most
// servers; use this one for a transport that they do not know.
package ratefield

import (
	"encoding/base64"
	"strconv"
)

// DraftVersion is the version of draft-ietf-httpapi-ratelimit-headers by which this
// package writes RateLimit-Policy and RateLimit. Their syntax is that of structured
// fields, RFC 9651.
const DraftVersion = 11

// A Draft is a version of the draft by which RateLimit may be written.
type Draft uint8

const (
	// Draft11 is version 11, the default: the parameters are r and t.
	Draft11 Draft = iota
	// DraftProposed is what is proposed for the version after that: a and w in place of r and t.
	// It changes as the proposal does. Clients of the runtime read both.
	DraftProposed
)

// maxInteger is the largest Integer of RFC 9651, section 3.3.1.
const maxInteger = 999_999_999_999_999

// maxPartition is the longest partition key in bytes.
const maxPartition = 32

// A Member is what the fields say about one policy.
type Member struct {
	// Name is the public name of the policy. What is not printable ASCII in it is
	// written as %XX.
	Name string
	// Unit is that of the quota, the parameter qu. It is empty for requests.
	Unit string
	// Quota is the parameter q. A number above 999,999,999,999,999, the largest that the
	// fields can have, is written as that one, here and in Left.
	Quota int64
	// Window is the parameter w in seconds. 0 leaves it out.
	Window int64
	// Known reports whether RateLimit has this member.
	Known bool
	// Left is the parameter r, or a.
	Left int64
	// Effective is the parameter t, or w, the effective window in seconds. 0 leaves it
	// out.
	Effective int64
	// Partition is the parameter pk, of which 32 bytes are written at most. If it
	// is empty there is none.
	Partition string
}

// AppendPolicies appends the value of RateLimit-Policy: section 3 of the draft.
func AppendPolicies(dst []byte, members []Member) []byte {
	for i := range members {
		m := &members[i]
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendString(dst, m.Name)
		dst = appendInteger(append(dst, ";q="...), m.Quota)
		if m.Unit != "" {
			dst = appendString(append(dst, ";qu="...), m.Unit)
		}
		if m.Window > 0 {
			dst = appendInteger(append(dst, ";w="...), m.Window)
		}
		dst = m.appendPartition(dst)
	}
	return dst
}

// AppendLimits appends the value of RateLimit: section 4 of the draft. It appends
// nothing if no member is known.
func AppendLimits(dst []byte, members []Member, draft Draft) []byte {
	start, left, effective := len(dst), ";r=", ";t="
	if draft == DraftProposed {
		left, effective = ";a=", ";w="
	}
	for i := range members {
		m := &members[i]
		if !m.Known {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		dst = appendString(dst, m.Name)
		dst = appendInteger(append(dst, left...), m.Left)
		if m.Effective > 0 {
			dst = appendInteger(append(dst, effective...), m.Effective)
		}
		dst = m.appendPartition(dst)
	}
	return dst
}

func (m *Member) appendPartition(dst []byte) []byte {
	if m.Partition == "" {
		return dst
	}
	dst = append(dst, ";pk=:"...)
	var raw [maxPartition]byte // so that the string is not copied to the heap
	dst = base64.StdEncoding.AppendEncode(dst, raw[:copy(raw[:], m.Partition)])
	return append(dst, ':')
}

// appendString appends a String of RFC 9651, section 3.3.3. Such a String holds
// printable ASCII alone, so other bytes are written as %XX.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
		} else {
			dst = appendPrintable(dst, c)
		}
	}
	return append(dst, '"')
}

// Printable returns s with every byte but printable ASCII written as %XX: as the
// fields have a name.
func Printable(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			ascii := make([]byte, 0, len(s)+16)
			for i := 0; i < len(s); i++ {
				ascii = appendPrintable(ascii, s[i])
			}
			return string(ascii)
		}
	}
	return s
}

func appendPrintable(dst []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	if c < 0x20 || c > 0x7e {
		return append(dst, '%', digits[c>>4], digits[c&15])
	}
	return append(dst, c)
}

func appendInteger(dst []byte, n int64) []byte {
	return strconv.AppendInt(dst, min(max(n, 0), maxInteger), 10)
}
