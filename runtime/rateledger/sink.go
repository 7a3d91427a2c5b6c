package rateledger

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/rategen/rategen/runtime/internal/accounts"
	"github.com/rategen/rategen/runtime/rule"
)

// A Sink keeps what is used. [Postgres] is one.
type Sink interface {
	// Write keeps rows, each in place of one of the same Namespace, Rule, Key, End and Epoch, unless
	// that has the Version or a higher one. It keeps the Total of the last row of each Day.
	Write(ctx context.Context, rows []Row) error
	// Read returns the rows that a query asks for, in the order of Key, End, Epoch and Day.
	Read(ctx context.Context, q Query) ([]Row, error)
}

// A Row is a state of a count: how much of a period a key has used.
type Row struct {
	Namespace, Rule string
	// Key is that of the rule, as [rule.Key.String] returns it, or its SHA-256.
	Key []byte
	// Begin and End are those of the period. End is the first instant that is not of it.
	Begin, End time.Time
	// Epoch is when the count began, in microseconds since 1970: after a loss of Redis there is
	// another one. What was used of a period is the sum of the Total of its epochs.
	Epoch int64
	// Version is higher of a later state: about when the count last changed, likewise.
	Version int64
	Total   int64
	// Base is what counted for the limit beside Total: a debt that was carried, what was restored,
	// or below 0 what [runtime.Limiter.Reset] has forgiven. Whole says that Total and Base are all
	// that counts, whatever other epochs have.
	Base  int64
	Whole bool
	// Max is that of the period.
	Max int64
	// Day is the date of the last change in the time zone of the period, in UTC.
	Day time.Time
}

// A Query asks for the rows of a rule.
type Query struct {
	Namespace, Rule string
	// Key is that of the rows; nil: any.
	Key []byte
	// From and To bound the time of periods: they end after From and begin before To.
	From, To time.Time
	// Days asks for a row for each day.
	Days bool
	// After is the key after which rows begin, of whole keys; Most is how many rows there are about, or 0.
	After []byte
	Most  int
}

// rowOf returns the row of a count.
func rowOf(c *accounts.Count) Row {
	k := c.Key
	return Row{
		Namespace: k.Namespace(), Rule: k.Name, Key: keyOf(k.Rule, k.Parts()),
		Begin: time.UnixMicro(c.Begin).UTC(), End: time.UnixMicro(c.End).UTC(),
		Epoch: c.Entry.Epoch, Version: c.Entry.Version,
		Total: min(c.Used-c.Entry.Base, rule.MaxAmount), Base: c.Entry.Base, Whole: c.Entry.Whole,
		Max: k.Max, Day: k.Day(min(c.Entry.Version, c.End-1)),
	}
}

// keyOf returns how a ledger knows a key.
func keyOf(r *rule.Rule, parts string) []byte {
	if r.Ledger == rule.LedgerHash {
		sum := sha256.Sum256([]byte(parts))
		return sum[:]
	}
	return []byte(parts)
}
