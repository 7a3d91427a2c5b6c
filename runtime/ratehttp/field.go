package ratehttp

import (
	"encoding/base64"
	"strconv"
)

// DraftVersion is the version of draft-ietf-httpapi-ratelimit-headers by which this
// package writes RateLimit-Policy and RateLimit. Their syntax is that of structured
// fields, RFC 9651.
const DraftVersion = 11

// maxInteger is the largest Integer of RFC 9651, section 3.3.1.
const maxInteger = 999_999_999_999_999

// A member is what the fields say about one policy.
type member struct {
	name string // of any bytes
	unit string // of the quota; empty for requests, which is the default
	// quota is q, and window is w in seconds or 0.
	quota, window int64
	// known reports whether the field RateLimit has this member: with left as r,
	// and effective as t in seconds or 0.
	known           bool
	left, effective int64
	partition       string // pk as at most partitionBytes bytes, or empty
}

// appendPolicies appends the value of RateLimit-Policy: section 3 of the draft.
func appendPolicies(dst []byte, members []member) []byte {
	for i := range members {
		m := &members[i]
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendString(dst, m.name)
		dst = appendInteger(append(dst, ";q="...), m.quota)
		if m.unit != "" {
			dst = appendString(append(dst, ";qu="...), m.unit)
		}
		if m.window > 0 {
			dst = appendInteger(append(dst, ";w="...), m.window)
		}
		dst = m.appendPartition(dst)
	}
	return dst
}

// appendLimits appends the value of RateLimit: section 4 of the draft. It appends
// nothing if no member is known.
func appendLimits(dst []byte, members []member) []byte {
	start := len(dst)
	for i := range members {
		m := &members[i]
		if !m.known {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ", "...)
		}
		dst = appendString(dst, m.name)
		dst = appendInteger(append(dst, ";r="...), m.left)
		if m.effective > 0 {
			dst = appendInteger(append(dst, ";t="...), m.effective)
		}
		dst = m.appendPartition(dst)
	}
	return dst
}

func (m *member) appendPartition(dst []byte) []byte {
	if m.partition == "" {
		return dst
	}
	dst = append(dst, ";pk=:"...)
	var raw [partitionBytes]byte // so that the string is not copied to the heap
	dst = base64.StdEncoding.AppendEncode(dst, raw[:copy(raw[:], m.partition)])
	return append(dst, ':')
}

// appendString appends a String of RFC 9651, section 3.3.3. Such a String holds
// printable ASCII alone, so other bytes are written as %XX.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		default:
			dst = appendPrintable(dst, c)
		}
	}
	return append(dst, '"')
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
