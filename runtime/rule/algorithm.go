package rule

import (
	"fmt"
	"strconv"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

// An Algorithm says how a rule counts.
type Algorithm uint8

const (
	// SlidingLog keeps the time of every event and is exact: no window of any position holds
	// more than Max, and no call is refused while it holds fewer. The window at the time t is
	// (t-Window, t]: an event exactly one Window old has left it. With a Resolution all that
	// holds for the times that events are given, see [Rule].
	SlidingLog Algorithm = iota
	// SlidingCounter counts events in [Buckets]. No window holds more than Max; an event may
	// count for up to one bucket longer than the window.
	SlidingCounter
	// FixedWindow counts from the first event on and starts anew when the window is over.
	// Around that moment up to twice Max pass in one window.
	FixedWindow
	// TokenBucket admits a Burst at once and Max a window in the long run: no window holds more
	// than Burst and Max together.
	TokenBucket
	// LeakyBucket is a [TokenBucket] by another name, unless the rule has a Wait: then it is a
	// queue which calls leave evenly spaced.
	LeakyBucket
	// Concurrency admits Max calls at a time, over all processes. A call holds as many permits
	// as it costs from runtime.Limiter.Take to runtime.Limiter.Settle, which its caller must not forget: the
	// limiter renews them until then, or until runtime.Limiter.Close. Those of a process that has died
	// lapse within a Window. RetryAfter is an estimate by how long calls have lasted lately, and
	// at most the time until permits lapse.
	Concurrency
)

// String returns the algorithm as the directive spells it.
func (a Algorithm) String() string {
	return spelled("Algorithm", uint8(a), algorithm.Names...)
}

// spelled returns the name of a value, of a type whose values count from 0.
func spelled(kind string, value uint8, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", kind, value)
}

// A Storage says how Redis keeps a [SlidingLog]. All decide alike.
type Storage uint8

const (
	// StorageZSET keeps events in a sorted set: easy to read by hand, 20 bytes an event up to
	// 128 events, about 130 beyond.
	StorageZSET Storage = iota
	// StoragePacked keeps events in a string: 7 to 9 bytes an event, and the least work for
	// Redis. Nothing but a program can read it.
	StoragePacked
)

// String returns the storage as the directive spells it.
func (s Storage) String() string { return spelled("Storage", uint8(s), "zset", "packed") }

// MaxBuckets is the largest number of buckets of a [SlidingCounter].
const MaxBuckets = spec.MaxBuckets

// Buckets says how a [SlidingCounter] divides its window. The zero value is 60 buckets of equal
// width.
type Buckets struct {
	coarse, fine int16 // fine 0: equal buckets
	adaptive     bool
}

// EqualBuckets divides the window into n buckets, from 1 to [MaxBuckets]. An event counts for
// at most 1/n of the window too long.
func EqualBuckets(n int) Buckets {
	b := LayeredBuckets(n, 1)
	b.fine = 0
	return b
}

// LayeredBuckets divides the window into coarse buckets of fine ones each, at least one and
// together at most [MaxBuckets]. It decides as coarse*fine equal buckets do, and costs as much.
func LayeredBuckets(coarse, fine int) Buckets {
	if coarse < 1 || fine < 1 || coarse > MaxBuckets || fine > MaxBuckets || coarse*fine > MaxBuckets {
		return Buckets{coarse: -1}
	}
	return Buckets{coarse: int16(coarse), fine: int16(fine)}
}

// AdaptiveBuckets adapts the width of new buckets to the traffic, from 1/1024 of the window
// when it is dense to 1/16 when it is sparse. An event counts for at most 1/16 of the window
// too long.
func AdaptiveBuckets() Buckets { return Buckets{adaptive: true} }

// String returns the buckets as the directive spells them.
func (b Buckets) String() string {
	b = b.orDefault()
	if b.adaptive {
		return "auto"
	}
	if b.fine > 0 {
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
