package rule

import (
	"encoding"
	"fmt"
	"strconv"

	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/keytext"
)

// A Key is the part of a Redis key that differs from caller to caller: the parts of a
// directive's key option, escaped and joined by colons. The zero Key has no parts: one budget
// for all callers.
//
// In a part the bytes % : { } and every control byte are written as %XX. Two different tuples
// therefore never give one key, and no caller can choose the slot of a Redis Cluster.
//
// A Key is a plain value: it may be copied, and a copy grows on its own.
type Key struct{ parts keytext.Parts }

// NewKey returns a Key without parts. It stays on the caller's stack when it is passed to
// [Rule.Limit].
func NewKey() *Key { return &Key{} }

// AddString adds s as a part. An empty part is one like any other: all callers whose part is
// empty share a budget, which the log tells once for each rule.
func (k *Key) AddString(s string) *Key {
	k.parts.AddString(s)
	return k
}

// AddBytes adds the bytes of b as a part, as if they were a string.
func (k *Key) AddBytes(b []byte) *Key {
	k.parts.AddBytes(b)
	return k
}

// AddInt adds n in decimal as a part.
func (k *Key) AddInt(n int64) *Key {
	k.parts.AddInt(n)
	return k
}

// AddUint adds n in decimal as a part.
func (k *Key) AddUint(n uint64) *Key {
	k.parts.AddUint(n)
	return k
}

// AddBool adds "true" or "false" as a part.
func (k *Key) AddBool(b bool) *Key { return k.AddString(strconv.FormatBool(b)) }

// AddText adds the text that m marshals to as a part. If m returns an error the Key is invalid,
// as after [Key.AddInvalid].
func (k *Key) AddText(m encoding.TextMarshaler) *Key {
	text, err := m.MarshalText()
	if err != nil {
		return k.AddInvalid(fmt.Sprintf("MarshalText of %T failed", m)) // its error may quote the value
	}
	return k.AddBytes(text)
}

// AddStringer adds the text of s as a part.
func (k *Key) AddStringer(s fmt.Stringer) *Key { return k.AddString(s.String()) }

// AddInvalid marks the Key as one that cannot be built, because a pointer on the way to the
// part is nil, say. The reason is for the log and must not quote a caller's values. The rule's
// [InvalidKeyPolicy] decides a call with such a key: by default, all calls whose keys lack the
// same part share one budget. In the Key's text %invalid stands for the part.
func (k *Key) AddInvalid(reason string) *Key {
	k.parts.AddInvalid(reason)
	return k
}

// String returns the parts as they stand in the Redis key.
func (k *Key) String() string { return string(k.parts.Bytes()) }

// Pattern returns the pattern of [Override] that stands for the key alone, in text that JSON
// can hold.
func (k *Key) Pattern() string { return keytext.Pattern{Text: k.String()}.JSON() }

// ParseKey is the inverse of [Key.String]: it returns the Key whose parts stand in the Redis
// key as text says, escaped and joined by colons. It is for tools with which an operator looks
// at the key of one caller. The empty text is the Key of a rule without a key option, and of an
// empty part.
//
// %invalid stands for a part that could not be built. %2A and escapes of bytes above 0x7F are
// read as in the patterns of [Override]. In place of parts that were too long for a Redis key,
// text may have what stands there: %sha256- and the hash. Any other text that no key has is
// runtime.ErrInvalidKey, and so is one of more than 4,096 bytes.
func ParseKey(text string) (*Key, error) {
	parts, err := keytext.ParseParts(text)
	if err != nil {
		return nil, err
	}
	return &Key{parts}, nil
}

// Limit returns the rule applied to one key, at a cost of 1. A nil key is the Key without
// parts.
func (r *Rule) Limit(key *Key) Limit {
	if r == nil || key == nil {
		return r.bareLimit(key)
	}
	return Limit{Rule: r, Cost: 1, Max: r.Max, Key: *key} // in one go, which is quicker
}

// bareLimit is Limit without a rule or without a key.
func (r *Rule) bareLimit(key *Key) Limit {
	l := Limit{Rule: r, Cost: 1}
	if r != nil {
		l.Max = r.Max
	}
	if key != nil {
		l.Key = *key
	}
	return l
}

// A Limit is a rule applied to one call: to which key, at what cost, with which max. It is a
// plain value.
type Limit struct {
	Rule *Rule
	// Cost and Max are as in [Limit.WithCost] and [Limit.WithMax].
	Cost, Max int64
	period    *calendar.Period // or nil: the rule's
	Key       Key
}

// WithCost returns the limit with a cost of n events. A cost of 0 charges nothing, and passes
// unless all calls on the key are refused: by a [Rule.Block] or [Rule.Hold] that is on, or by a
// max of 0, as an override that blocks the key sets it. A negative cost is [ErrInvalidLimit],
// and so is one above [MaxLogCost] that a [SlidingLog] would have to store.
func (l Limit) WithCost(n int64) Limit {
	l.Cost = n
	return l
}

// WithMax returns the limit with a max of n in place of the rule's. At 0 nobody is admitted; a
// negative max is [ErrInvalidLimit].
func (l Limit) WithMax(n int64) Limit {
	l.Max = n
	return l
}

// WithShare returns the limit for a call of one of those who share it, by a rule with a Headroom: whose
// share says, as a [Key] of what divides the limit, a tenant's name say. A nil one is the Key without
// parts. A tenant of weight 2 may use twice as much as one of weight 1 when both want more than there
// is. A weight below 1 or above [MaxWeight] is [ErrInvalidLimit].
func (l Limit) WithShare(share *Key, weight int64) Limit {
	if share == nil {
		share = &Key{}
	}
	if weight < 1 || weight > MaxWeight {
		weight = keytext.InvalidWeight
	}
	l.Key.parts.SetTenant(&share.parts, uint32(weight))
	return l
}

// PartsOf returns the parts of a limit's key.
func (engine) PartsOf(l *Limit) *keytext.Parts { return &l.Key.parts }

// PeriodOf returns the period of a limit that brings one of its own, or nil.
func (engine) PeriodOf(l *Limit) *calendar.Period { return l.period }

// MakeLimit returns a limit whose key has parts, and that brings a period or nil.
func (engine) MakeLimit(r *Rule, parts keytext.Parts, cost, max int64, p *calendar.Period) Limit {
	return Limit{Rule: r, Cost: cost, Max: max, period: p, Key: Key{parts}}
}
