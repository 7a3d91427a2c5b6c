// Package runtime stands in for the real one. It keeps what it is asked, and
// decides as it is told to.
package runtime

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"time"
)

const IsAtLeastVersion0_1_0 = true

var ErrRefused = errors.New("refused")

type Rule struct {
	Name, Source, Prefix string
	Window               time.Duration
	Max                  int64
	Hold                 bool
}

func (r *Rule) Limit(key *Key) Limit { return Limit{Rule: r, Key: key, Cost: 1} }

type Limit struct {
	Rule      *Rule
	Key       *Key
	Cost, Max int64
}

func (l Limit) WithCost(n int64) Limit { l.Cost = n; return l }
func (l Limit) WithMax(n int64) Limit  { l.Max = n; return l }

type Key struct {
	Parts   []any
	Invalid bool
}

func NewKey() *Key { return &Key{} }

func (k *Key) add(v any) *Key { k.Parts = append(k.Parts, v); return k }

func (k *Key) AddString(s string) *Key         { return k.add(s) }
func (k *Key) AddInt(n int64) *Key             { return k.add(n) }
func (k *Key) AddUint(n uint64) *Key           { return k.add(n) }
func (k *Key) AddBool(b bool) *Key             { return k.add(b) }
func (k *Key) AddBytes(b []byte) *Key          { return k.add(string(b)) }
func (k *Key) AddStringer(s fmt.Stringer) *Key { return k.add(s.String()) }
func (k *Key) AddText(m encoding.TextMarshaler) *Key {
	t, _ := m.MarshalText()
	return k.add(string(t))
}
func (k *Key) AddInvalid(reason string) *Key { k.Invalid = true; return k }

type Decision struct{ Rule string }

// A Limiter admits all calls, or none.
type Limiter struct {
	Refuses bool
	Taken   []Limit
	Later   []int64
	Held    time.Duration
}

func (l *Limiter) Enabled() bool     { return true }
func (l *Limiter) Register(...*Rule) {}

func (l *Limiter) Take(_ context.Context, limits ...Limit) (Decision, error) {
	l.Taken = append(l.Taken, limits...)
	if l.Refuses && len(limits) > 0 {
		return Decision{Rule: limits[0].Rule.Name}, ErrRefused
	}
	return Decision{}, nil
}

func (l *Limiter) SettleLater(_ context.Context, _ Decision, costs ...int64) {
	l.Later = append(l.Later, costs...)
}
