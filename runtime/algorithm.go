package runtime

import (
	"fmt"
	"strconv"
	"time"
)

// An Algorithm says how a rule counts.
type Algorithm uint8

const (
	// SlidingLog keeps the time of every event and is exact: no window of any
	// position holds more than Max, and no call is denied while it holds fewer. With
	// a Resolution that holds for the times that events are given, see [Rule].
	SlidingLog Algorithm = iota
	// SlidingCounter counts events in [Buckets]. No window holds more than
	// Max; an event may count for up to one bucket longer than the window.
	SlidingCounter
	// FixedWindow counts from the first event on and starts anew when the
	// window is over. Around that moment up to twice Max pass in one window.
	FixedWindow
	// TokenBucket admits a Burst at once and Max a window in the long run: no window
	// holds more than Burst and Max together.
	TokenBucket
	// LeakyBucket is a [TokenBucket] by another name, unless the rule has a
	// Wait: then it is a queue which calls leave evenly spaced.
	LeakyBucket
	// Concurrency admits Max calls at a time, over all processes. A call holds
	// as many permits as it costs from [Limiter.Take] until its decision is
	// settled, see [Limiter.Settle], which its caller must not forget: the limiter
	// renews the permits until then, or until [Limiter.Close]. Those of a process
	// that has died lapse within a Window. RetryAfter is an estimate by how long
	// calls have lasted lately, and at most the time until permits lapse.
	Concurrency

	algorithms // how many there are
)

// String returns the algorithm as the directive spells it.
func (a Algorithm) String() string {
	switch a {
	case SlidingLog:
		return "sliding-log"
	case SlidingCounter:
		return "sliding-counter"
	case FixedWindow:
		return "fixed-window"
	case TokenBucket:
		return "token-bucket"
	case LeakyBucket:
		return "leaky-bucket"
	case Concurrency:
		return "concurrency"
	}
	return unknownAlgorithm(a)
}

func unknownAlgorithm(a Algorithm) string { return fmt.Sprintf("Algorithm(%d)", uint8(a)) }

// A Storage says how Redis keeps a [SlidingLog]. All decide alike.
type Storage uint8

const (
	// StorageZSET keeps events in a sorted set: easy to read by hand, 20 bytes an event
	// up to 128 events, about 130 beyond.
	StorageZSET Storage = iota
	// StoragePacked keeps events in a string: 7 to 9 bytes an event, and the least work
	// for Redis. Nothing but a program can read it.
	StoragePacked
)

// String returns the storage as the directive spells it.
func (s Storage) String() string {
	switch s {
	case StorageZSET:
		return "zset"
	case StoragePacked:
		return "packed"
	}
	return fmt.Sprintf("Storage(%d)", uint8(s))
}

// MaxBuckets is the largest number of buckets of a [SlidingCounter].
const MaxBuckets = 1000

// Buckets says how a [SlidingCounter] divides its window. The zero value is 60
// buckets of equal width.
type Buckets struct {
	coarse, fine int16 // fine 0: equal buckets
	adaptive     bool
}

// EqualBuckets divides the window into n buckets, from 1 to [MaxBuckets]. An
// event counts for at most 1/n of the window too long.
func EqualBuckets(n int) Buckets {
	if n < 1 || n > MaxBuckets {
		return Buckets{coarse: -1}
	}
	return Buckets{coarse: int16(n)}
}

// LayeredBuckets divides the window into coarse buckets of fine ones each, at
// least one and together at most [MaxBuckets]. It decides as coarse*fine equal
// buckets do, and costs as much.
func LayeredBuckets(coarse, fine int) Buckets {
	if coarse < 1 || fine < 1 || coarse > MaxBuckets || fine > MaxBuckets || coarse*fine > MaxBuckets {
		return Buckets{coarse: -1}
	}
	return Buckets{coarse: int16(coarse), fine: int16(fine)}
}

// AdaptiveBuckets adapts the width of new buckets to the traffic, from 1/1024
// of the window when it is dense to 1/16 when it is sparse. An event counts
// for at most 1/16 of the window too long.
func AdaptiveBuckets() Buckets { return Buckets{adaptive: true} }

// String returns the buckets as the directive spells them.
func (b Buckets) String() string {
	b = b.orDefault()
	switch {
	case b.adaptive:
		return "auto"
	case b.fine > 0:
		return strconv.Itoa(int(b.coarse)) + "x" + strconv.Itoa(int(b.fine))
	}
	return strconv.Itoa(int(b.coarse))
}

func (b Buckets) orDefault() Buckets {
	if b == (Buckets{}) {
		return Buckets{coarse: 60}
	}
	return b
}

// width returns the width of the finest bucket in microseconds, rounded up so
// that the buckets cover the window; 0 for adaptive ones.
func (b Buckets) width(window time.Duration) int64 {
	b = b.orDefault()
	if b.adaptive {
		return 0
	}
	n := int64(b.coarse) * max(int64(b.fine), 1)
	return (window.Microseconds() + n - 1) / n
}
