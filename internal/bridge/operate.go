package bridge

import (
	"context"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// An Operator is what a runtime.Limiter does for pages, commands and metrics of this module.
type Operator interface {
	// Processes and RefusedMinutes are those of its store and its namespace. A limiter on another
	// store than Redis has none.
	Processes(context.Context) ([]Process, error)
	RefusedMinutes(ctx context.Context, since time.Time) ([]RefusedMinute, error)
	// ToldKey returns a key as reports have it: see runtime.WithRefusals.
	ToldKey(key string) string
	// Found returns what Findings of the limiter has, and what is over.
	Found() []Found
	// KeysOf returns the keys of a rule for a survey. Their Expiry, by the overrides in force, cuts
	// no key's window short; it may empty a bucket early whose max is lower for some calls than the
	// rule's.
	KeysOf(*rule.Rule) *KeyGroup
	// RedisKey returns the key in Redis under which a limit counts by the overrides in force. It is
	// empty for a rule that has neither a Prefix nor a Name.
	RedisKey(rule.Limit) string
	// Tenants returns who shares a limit that is divided, most of each kind: those who have used most of late first,
	// then others who are blocked, and how many have used something.
	Tenants(ctx context.Context, limit rule.Limit, most int) (all []Tenant, total int64, err error)
	// Permits returns how many permits of concurrency limits the calls of this process hold, by
	// the name of the rule. A rule whose calls have all ended stays, at 0, unless there are more
	// than 10,000 names.
	Permits() map[string]int64
	// Leased returns how many units this process holds of rules with a Lease, by the name of the
	// rule: they are charged, and no call has used them yet.
	Leased() map[string]int64
}

// A RedisStore is what a runtime.RedisStore does for operators.
type RedisStore interface {
	// Processes returns what limiters with a namespace have told this Redis of themselves, sorted
	// by name. Those that have ended without Close are among them for up to four minutes.
	Processes(ctx context.Context, namespace string) ([]Process, error)
	// RefusedMinutes returns what limiters with a namespace have refused, from the minute of since
	// on, in the order of time.
	RefusedMinutes(ctx context.Context, namespace string, since time.Time) ([]RefusedMinute, error)
	// Survey finds the keys of groups, counts them and their bytes, and gives those that never
	// expire the group's Expiry. It walks over all of the database, on a cluster all masters, with
	// SCAN, and asks about 200 keys at a time; so it takes a while, is no burden to others, and may
	// miss keys that come and go meanwhile. A key counts for the group with the longest prefix.
	// Survey ends when ctx does, or as soon after as the client gives up on a command; the groups
	// then hold what was found so far, as they do with any error.
	Survey(ctx context.Context, groups ...*KeyGroup) error
	// Failures returns how many calls the store has not decided, and how many charges it has not
	// settled or refunded, since it was made, by error class. Classes without any are left out.
	Failures() map[observe.ErrorClass]int64
}

// A Tenant is one of those that share a limit.
type Tenant struct {
	Name string // as it stands in Redis
	// Used is what it has used of late by its weight: it decays by 1/e in a window.
	Used float64
	// Rest is how long it is still blocked.
	Rest time.Duration
}

// AliveFor is after how long without a sign a process is taken to have ended.
const AliveFor = 15 * time.Second

// MaxReported is how many rules a [Process] has at most.
const MaxReported = 1_000

// A Process is the report of a limiter to the Redis of its store: it says what the limiter has in
// force. A limiter with rules reports ten seconds after its start, a second after overrides have
// changed, and each minute, and tells every five seconds that it lives. A report is a trip of its own,
// for which no call waits. Redis keeps it for four minutes at most.
type Process struct {
	// Name is that of the machine and something random. A process with several limiters in a
	// namespace has several.
	Name string `json:"name"`
	// Host is the machine, and Build the version of the program, as the build has noted it.
	Host  string `json:"host,omitempty"`
	Build string `json:"build,omitempty"`
	// At is when it was told, by the clock of the process, which is behind that of Redis by Behind.
	At     time.Time     `json:"at"`
	Behind time.Duration `json:"behind"`
	// Alive is when it gave its last sign, by the clock of Redis. Silent says that this is longer
	// than [AliveFor] ago.
	Alive  time.Time `json:"-"`
	Silent bool      `json:"-"`
	// Overrides says where the overrides come from that it follows: "redis:" and the key of a
	// hash, "file:" and a path, "function", or nothing.
	Overrides string `json:"overrides,omitempty"`
	// Version is that of the overrides in force, see runtime.Overrides.Version, and Since when they came
	// into force, by the clock of Redis.
	Version string    `json:"version,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Rules are its rules, sorted by name, [MaxReported] at most.
	Rules []ProcessRule `json:"-"`
	// Findings are those of runtime.Limiter.Findings, by their codes.
	Findings []FindingGroup `json:"findings"`

	Digest string `json:"rules"`  // of its rules, which processes share
	Called []byte `json:"called"` // a bit for each

	// Calls are those before its last sign of life. Without Seconds it has told none.
	Calls ProcessCalls `json:"-"`
}

// ProcessCalls are calls that a limiter has decided in some seconds, and what it holds. The first 1,024 of
// an outcome are counted one by one, and after these one of 64, as 64.
type ProcessCalls struct {
	Seconds float64 `json:"seconds"`
	// Decided is how many limits of calls were admitted, refused, over in shadow mode, and not decided by
	// the store. Redis was asked about Asked of them.
	Decided [4]int64 `json:"decided"`
	Asked   int64    `json:"asked"`
	// Rules are Decided of each of the hundred rules with most calls, behind the place of that in the Rules of the
	// process.
	Rules [][5]int64 `json:"rules,omitempty"`
	// Keys, of one of 64 calls, are the ten that Redis was asked about most, and Permits those of the fifty keys that were
	// held for longest. Keys are as in a [RefusedMinute]: without runtime.WithRefusals there are none.
	Keys    []KeyCalls   `json:"keys,omitempty"`
	Permits []KeyPermits `json:"permits,omitempty"`
}

// KeyCalls is how often Redis was asked about a key of a rule.
type KeyCalls struct {
	Rule  string `json:"rule"`
	Key   string `json:"key"`
	Count int64  `json:"count"`
}

// KeyPermits is how many permits of a key calls hold, and since when the first of them, by the clock of Redis.
type KeyPermits struct {
	Rule    string    `json:"rule"`
	Key     string    `json:"key"`
	Permits int64     `json:"permits"`
	Since   time.Time `json:"since"`
}

// A ProcessRule is a rule of a [Process].
type ProcessRule struct {
	Name string `json:"name"`
	// Prefix is what its keys start with, behind the namespace.
	Prefix string `json:"prefix"`
	// Terms say how much it admits as it was declared, such as "5 in 10s, sliding-log".
	Terms string `json:"terms"`
	// Called reports whether a call has met the rule.
	Called bool `json:"-"`
}

// A RefusedMinute is how often a rule has refused calls with one key in a minute, over all processes.
// Limiters tell it with their reports, see [Process], so it may be of the minute before. Redis keeps,
// of each minute, the 100 callers that were refused most: whom each rule refuses most goes before the
// next ones of any. A process finds these by 1,024 counters. The first 128 refusals of a caller are
// counted one by one, and after these one of 32, as 32. Refusals of the process cap and of failure
// policies are not counted. What limits in shadow mode would have refused stands behind all others.
type RefusedMinute struct {
	// Start is the beginning of the minute, by the clock of Redis.
	Start time.Time
	// Rule and Key are as in a [observe.KeyRefusedEvent], but for a Key that runtime.WithRefusals hides. Without a
	// Rule these are the refusals of all callers that are not among the 100.
	Rule, Key string
	// Max is that of the calls, of a rule whose calls bring their own, and below 0 of others.
	Max   int64
	Count int64
	// Shadow says that the limit was in shadow mode, and refused nobody.
	Shadow bool
}

// KeepRefusals is for how long Redis keeps what limiters have refused, without runtime.WithRefusals.
const KeepRefusals = 24 * time.Hour

// A KeyGroup is the keys in Redis that start with a prefix, and what a [RedisStore]
// finds about them.
type KeyGroup struct {
	// Prefix is what the keys start with, namespace included.
	Prefix string
	// Expiry is how long a key may live on that is found without an expiry. 0 leaves such keys
	// alone, which a group without a prefix must.
	Expiry time.Duration
	// Each, if not nil, is called with each key that is found, for one at a time. Nothing else
	// is looked at meanwhile, so it may take its time.
	Each func(FoundKey)

	// Keys is how many there are. A key that Redis lists twice, as it may while it moves keys
	// in memory, counts twice.
	Keys int64
	// Bytes is the memory that they take, by MEMORY USAGE.
	Bytes int64
	// Endless is how many of them have no expiry. The limiter leaves none behind, so somebody
	// else has taken it away, or uses the prefix too.
	Endless int64
	// Healed is how many of those were given one.
	Healed int64

	Tag Tag // what the keys end with, or nil
}

// A FoundKey is a key that [RedisStore] has found.
type FoundKey struct {
	// Key is the whole Redis key, and Text as [KeyGroup.Text] returns it.
	Key, Text string
	// Bytes is the memory that the key takes.
	Bytes int64
	// Expiry is how long it lives on without a change, or below 0 if it has no expiry.
	Expiry time.Duration
}

// A Tag is what the keys of a rule end with.
type Tag interface {
	// Cut returns a text without the tag, and false if it does not end with that.
	Cut(text string) (string, bool)
}

// Text returns what stands in a key between the prefix of the group and what the keys of its
// rule end with, which is what [rule.ParseKey] reads; and false for a key of another group.
func (g *KeyGroup) Text(key string) (string, bool) {
	text, has := strings.CutPrefix(key, g.Prefix)
	if !has || g.Tag == nil {
		return text, has
	}
	return g.Tag.Cut(text)
}
