package spec

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// IsEscaped reports whether a byte of a part of a key is escaped, so that two tuples
// never give one key and no caller chooses the slot of a cluster.
func IsEscaped(c byte) bool {
	return c < 0x20 || c == 0x7f || c == '%' || c == ':' || c == '{' || c == '}'
}

// AppendEscaped appends a part of a key as it stands in Redis: %XX for what is escaped.
func AppendEscaped[T string | []byte](dst []byte, part T) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(part); i++ {
		if c := part[i]; IsEscaped(c) {
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// Prefix returns what the keys of a rule start with behind its namespace: its own prefix, or what it has
// by its name.
func Prefix(own, name string) string {
	if own != "" || name == "" {
		return own
	}
	return string(append(AppendEscaped([]byte("rate_limit:"), name), ':'))
}

// HiddenKey returns what stands for a key where keys are hidden: a keyed hash, which nobody can
// compute who has not the secret. It is no key.
func HiddenKey(secret []byte, key string) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(key))
	return "%hidden-" + hex.EncodeToString(h.Sum(nil)[:16])
}
