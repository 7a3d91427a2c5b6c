// Package limiters has rategen and other limiters decide the same calls, each configured as
// its own manual says.
package limiters

import (
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/rategen/rategen/bench/internal/load"
	"github.com/rategen/rategen/runtime"
)

// A Limit is what a limiter is to enforce: max calls in a window.
type Limit struct {
	Window time.Duration
	Max    int64
}

// Limits are what the calls of a case meet: each limiter has the one that its
// kind has its usual work with.
type Limits struct {
	// Level is for limiters that keep a level or a count. Its window is long,
	// so that what they keep of a key is still there when its next call comes.
	Level Limit
	// Log is for limiters that remember single calls, or buckets of them. Its
	// window is short, so that calls leave it as fast as they come.
	Log Limit
}

// The limits that there are.
var (
	// Room is for many keys, of which each has some calls.
	Room = Limits{Level: Limit{time.Hour, 10_000}, Log: short}
	// HotRoom is for one key that has all calls.
	HotRoom = Limits{Level: Limit{time.Hour, 100_000_000}, Log: short}
	// LocalRoom is for many keys in memory, which have more.
	LocalRoom = Limits{Level: Limit{240 * time.Hour, 200_000}, Log: short}
	// ManyRoom is for so many keys in memory that a key's next call comes late.
	ManyRoom = Limits{Level: LocalRoom.Level, Log: Limit{10 * time.Second, 1_000_000}}
	// NoRoom has no room for any call once ten have come.
	NoRoom = Limits{Level: Limit{time.Hour, 10}, Log: Limit{time.Hour, 10}}
	// Long forgets no call while the program runs.
	Long = Limits{Level: Limit{24 * time.Hour, 20_000}, Log: Limit{24 * time.Hour, 20_000}}
	// Tight is Long with half the room.
	Tight = Limits{Level: Limit{24 * time.Hour, 10_000}, Log: Limit{24 * time.Hour, 10_000}}

	short = Limit{100 * time.Millisecond, 1_000_000}
)

// roomy reports whether all calls have room, and none is to fill a key: then what is given
// back can be taken again.
func (l Limits) roomy() bool { return l != NoRoom && l != Long && l != Tight }

// Server is where limiters over Redis keep their counts. They all use Client
// but two: one has a client of its own that it opens at Addr with as many
// connections, and one uses Rueidis.
type Server struct {
	Client      *redis.Client
	Rueidis     rueidis.Client
	Addr        string
	Connections int
	// Timeout is how long a decision of rategen's may wait for Redis.
	Timeout time.Duration
	// Keys is how many there are, and Cleanup is told what ends a limiter in memory.
	Keys    int
	Cleanup func(func())
}

// limiter returns one of rategen's over go-redis.
func (s Server) limiter() *runtime.Limiter {
	return quiet(runtime.NewRedisStore(s.Client, runtime.WithTimeout(s.Timeout)))
}

// A Limiter is one that is compared.
type Limiter struct {
	Name string
	Own  bool // is rategen's
	// Recalls reports that it refuses by itself what Redis has refused lately.
	Recalls bool
	// Leases reports that most of its calls do not leave the process.
	Leases bool
	// Floor reports that it is no limiter, but a bare command to Redis.
	Floor bool
	// ByHand is the name of what a user would write by hand in its place, or empty.
	ByHand string
	// MaxKeys is how many keys it can have at most; 0 means any number.
	MaxKeys int
	// OnlyRefuses reports that it has nothing to say about calls that have
	// room.
	OnlyRefuses bool
	New         func(Server, Limits) (load.Take, error)
}
