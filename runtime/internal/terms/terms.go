// Package terms holds the plain numbers that the engine decides by. A rule and
// the max of a call become [Terms], one limit of a call becomes a [Charge], and
// what a store finds about it is a [Result]. Stores know nothing else of rules.
package terms

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/calendar"
	"github.com/rategen/rategen/runtime/internal/keytext"
	"github.com/rategen/rategen/runtime/rule"
)

// Terms say how to count. Charges of equal Terms and key are charges to the same
// limit. Times are in microseconds.
type Terms struct {
	Algorithm algorithm.Algorithm
	// Shadow marks a limit that is counted and refuses nobody.
	Shadow bool
	// Window is the time that Max refers to.
	Window int64
	// Max is how much is admitted in a window.
	Max int64
	// Param is the length of a time slice of a log, 0 for exact times; the width
	// of a bucket of a counter, 0 for adaptive ones; the burst of a bucket; the number of a
	// process whose call may wait for Permits, below 0 if others do behind it, or 0. See [Terms.SetClock] for a Calendar.
	Param int64
	// More is how many fine buckets make a coarse one of a LayeredCounter; how
	// long a call may wait in a Queue; the headroom of a bucket that is divided; -1 for other buckets; how many Permits the process
	// has whose call may wait, less Max if that may pass other processes in line.
	More int64
	// Block is for how long a refused caller stays refused; 0: no longer than the
	// limit has no room. In shadow mode it says only that the key may hold a block.
	Block int64
	// Holds says that the key may be held, which is a block for everybody.
	Holds bool
	// Period is what periods of the calendar Max refers to, of a Calendar.
	Period *calendar.Period
	// Reserve is when a charge of a Reserved lapses that is neither settled nor renewed; 0:
	// never.
	Reserve int64
	// Debt says what becomes of what calls turn out to cost beyond Max: DebtDefault counts it
	// as every charge, DebtCarry, only of a Reserved, also in the next period.
	Debt rule.Debt
	// Keep is of how many periods of the calendar counts are kept when they are over.
	Keep uint8
	// Ledger says that a ledger reads the counts, see ledger.lua. It has a Keep.
	Ledger bool
	// Tells is the max by which shares of a period are told, see [Shares]; 0: none are. It is
	// Max, or 1 where that follows the load: all of its values are one then.
	Tells int64
}

// Kept returns for how long after the end of a period, in microseconds, a key lives for the
// counts that are kept.
func (t *Terms) Kept() int64 {
	if t.Keep == 0 {
		return 0
	}
	return int64(t.Keep) * t.Period.Unit.Longest().Microseconds()
}

// Is reports whether the algorithm has a trait.
func (t *Terms) Is(trait algorithm.Trait) bool { return algorithm.Traits[t.Algorithm]&trait != 0 }

// Lapses reports whether a call has what it is charged only while it runs, so that it lapses
// unless it is renewed.
func (t *Terms) Lapses() bool { return t.Reserve > 0 || t.Is(algorithm.Lends) }

// Lasts returns for how long a held charge lasts if it is not renewed.
func (t *Terms) Lasts() time.Duration {
	if t.Reserve > 0 {
		return Micros(t.Reserve)
	}
	return Micros(t.Window)
}

// SetClock makes the terms those of a time of the store's clock: of a Calendar, Window becomes the
// length of the period of that time, Param its end, and More that of the next one.
func (t *Terms) SetClock(clock int64) {
	if t.Period != nil {
		t.setPeriod(clock)
	}
}

// setPeriod is apart, so that SetClock is inlined.
func (t *Terms) setPeriod(clock int64) {
	b := t.Period.At(clock)
	t.Window, t.Param, t.More = b.End-b.Begin, b.End, b.Next
}

// Blocks reports whether the key may hold a block.
func (t *Terms) Blocks() bool { return t.Holds || t.Block > 0 }

// Micros returns a number of microseconds as a duration.
func Micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// A Label has the name of a charge's rule, for logs and errors, and the start and the end of
// its key. It does not affect decisions.
type Label struct {
	Name  string // of the rule
	Start string // of the rule's keys: namespace and prefix
	Tag   string // ends them
	// Reached is told the shares that charges of the rule have passed, see [Charge.Tell]. It
	// must not wait, and may be nil.
	Reached func(Reached)
	// Charged is told the key of each charge that a store has made or may have made, of Terms with a
	// Ledger. It must neither wait nor keep the key, and may be nil.
	Charged func(key []byte)
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
	if l.Hashes(parts) {
		dst = keytext.AppendHash(dst, parts)
	} else {
		dst = append(dst, parts...)
	}
	return append(dst, l.Tag...)
}

// Hashes reports whether a key has a hash in place of the given parts.
func (l *Label) Hashes(parts []byte) bool { return len(l.Start)+len(parts)+len(l.Tag) > MaxKey }

// ShortKey is the longest key that has a call on its caller's stack.
const ShortKey = 144

// Parts returns what a key has between its start and its tag.
func (l *Label) Parts(key []byte) []byte {
	if end := len(key) - len(l.Tag); len(l.Start) <= end {
		return key[len(l.Start):end]
	}
	return nil // not a key of the rule's
}

// flagCount is how many flags are in one piece of memory, which takes 512 bytes.
const flagCount = 4096

// Flags are one bit a decision, which is set once the decision is settled or refunded: that happens once
// at most, whichever of its copies is used. They live as long as any of their decisions.
type Flags struct {
	set [flagCount / 64]atomic.Uint64
}

// Set sets a flag, and reports whether it was not set.
func (f *Flags) Set(flag uint16) bool {
	bit := uint64(1) << (flag % 64)
	return f.set[flag/64].Or(bit)&bit == 0
}

// A FlagIssuer gives each decision a flag of its own. It is used by one goroutine at a time. The zero
// FlagIssuer is ready for use.
type FlagIssuer struct {
	flags *Flags
	next  uint16
}

// Issue returns the next flag.
func (i *FlagIssuer) Issue() (flags *Flags, flag uint16) {
	if i.flags == nil || i.next == flagCount {
		i.flags, i.next = new(Flags), 0
	}
	flags, flag = i.flags, i.next
	i.next++
	return flags, flag
}

var issuers = sync.Pool{New: func() any { return new(FlagIssuer) }}

// IssueFlag returns a flag where the caller has no issuer at hand.
func IssueFlag() (flags *Flags, flag uint16) {
	i := issuers.Get().(*FlagIssuer)
	flags, flag = i.Issue()
	issuers.Put(i)
	return flags, flag
}
