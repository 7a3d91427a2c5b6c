package rule

import "time"

// An Override changes a rule while the program runs. A field that is nil leaves the rule as it
// was declared.
type Override struct {
	// Enabled at false removes the limit: calls go on uncounted by it.
	Enabled *bool
	// Max is how much is admitted in a window, also where a call brings a max of its own. At 0
	// nobody is admitted. A burst that the rule declares stays, unless Burst changes it.
	Max *int64
	// Burst is how much a bucket admits at once, 1 at least.
	Burst *int64
	// Window is the time that the max refers to. Events that were counted in a shorter window
	// before are forgotten when that window is over.
	Window *time.Duration
	// Mode is whether the limit refuses calls.
	Mode *Mode
	// Keys are changes for single keys, by patterns. A pattern is a key as [Key.String] returns
	// it, or the beginning of keys and a *, as in premium-*. If a key matches several patterns,
	// the key itself is in force, or else the longest pattern. A * that ends a key is written
	// %2A; a * elsewhere in a pattern and an escape that no key has are errors. A key that is
	// too long for Redis may be written as it stands there, %sha256- and its hash. A rule may
	// have a million patterns, of up to 1,024 bytes.
	Keys map[string]KeyOverride
	// Shares are changes for single shares of [Limit.WithShare], by patterns as those of Keys.
	// They have a Weight alone.
	Shares map[string]KeyOverride
}

// A KeyOverride changes a rule for the keys of a pattern, each of which has a limit of its own, or for
// the shares of one. Its fields are as in [Override]. One that is nil leaves the keys as that says, or
// else as they are declared: Enabled at true gives them the limit that it removes.
type KeyOverride struct {
	Enabled *bool
	Max     *int64
	Burst   *int64
	Window  *time.Duration
	Mode    *Mode
	// Weight is that of a share, whatever weight its calls bring. Keys have none.
	Weight *int64
}
