package terms

import (
	"sync"
	"sync/atomic"
)

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
