package algorithm

// An Algorithm is one way of counting. Rules have several of them by one name.
type Algorithm uint8

const (
	LogZSet        Algorithm = iota // every event, in a sorted set
	LogPacked                       // every event, in a string
	Counter                         // buckets of equal or of adaptive width
	LayeredCounter                  // coarse buckets of fine ones
	FixedWindow                     // one count, from the first event on
	TokenBucket
	LeakyBucket
	Queue          // a leaky bucket that calls leave evenly spaced
	DividedTokens  // a TokenBucket that tenants share
	DividedLeaky   // a LeakyBucket likewise
	Permits        // what calls hold while they run
	Calendar       // one count, of a period of the calendar
	Reserved       // FixedWindow, of which charges may lapse or what is owed may be more than one count
	ReservedPeriod // Calendar likewise
	Algorithms
)

// Bounds of the numbers of rules.
const (
	MaxLog     = 1_000_000         // the max of an algorithm that stores every event
	MaxLogCost = 250               // the cost of one call to it
	MaxCount   = 1_000_000_000_000 // the max, cost and burst of one that multiplies, or adds up buckets
	MaxAmount  = 1<<53 - 1         // the max and cost of a fixed window: its sums are exact in a float64

	// Few is how many events Redis keeps in one piece.
	Few = 128

	minute = 60
)

// A State is what memory holds of a key. Algorithms with one may share that of a key.
type State uint8

const (
	Log State = 1 + iota
	Count
	Window
	Dates
	Level
	Division
	Permit
	Reservation
	States
)

// A Script is the pieces by which Redis counts. Of pieces of one name the last one holds.
type Script struct {
	Name  string
	Files []string
}

// Scripts are those that rows name, in the order in which they stand in a script of several. Terms of
// the last one have two more values than others.
var Scripts = [...]Script{
	{"zset", []string{"sliding_log_zset.lua"}},
	{"packed", []string{"sliding_log_packed.lua"}},
	{"counter", []string{"sliding_counter.lua"}},
	{"fixed", []string{"fixed_window.lua"}},
	{"bucket", []string{"bucket.lua"}},
	{"permits", []string{"concurrency.lua"}},
	{"calendar", []string{"fixed_window.lua", "calendar.lua"}},
	{Shares, []string{"bucket.lua", "shares.lua"}},
	{Returns, []string{"reserved.lua"}},
}

// Returns is the name of the script with more values, and Shares that of which calls have more.
const (
	Returns = "reserved"
	Shares  = "shares"
)

// Words that several rows have.
const (
	atMost   = "At most {calls} in {any}."
	last     = "A call is refused while the last {window} have no room for it, and then counts for nothing."
	refused  = "A call is refused while the {per} has no room for it, and then counts for nothing."
	level    = "A string with a level and its time."
	division = "A sorted set with a level and its time, and an entry for each share."
	longer   = " So that the limit holds all the same, Redis counts every call for {lease} longer."
	lower    = " So that the limit holds all the same, the burst is lower by what drains in {lease}."
	entries  = "A sorted set with the bounds of the {per}, a count, and an entry for each call that runs.{keep}"
	twice    = "Around the end of a window up to {twice} may pass within {window}."
	first    = "At most {calls} in a window of {per}, which the first call begins."
)

// Rows are those of all algorithms.
var Rows = [Algorithms]Row{
	LogZSet: {
		Name: "sliding-log", Script: "zset", State: Log, Traits: Slides | Merges | Repeats, EventWork: 8, EventBytes: [2]int64{20, 130},
		Words: Words{atMost, "The count is exact.", last, "", longer},
		Most:  MaxLog, MostCost: MaxLogCost, Seconds: minute, Debt: "carry", Options: []string{"rate", "storage", "resolution"},
	},
	LogPacked: {
		Name: "sliding-log", Need: Packing, Script: "packed", State: Log, Suffix: "%packed", Traits: Slides | Merges | Repeats,
		EventWork: 1, EventBytes: [2]int64{9, 9},
		Words: Words{atMost, "The count is exact.", last, "", longer},
	},
	Counter: {
		Name: "sliding-counter", Script: "counter", State: Count, Suffix: "%counter", Traits: Slides | Merges | Repeats,
		Words: Words{atMost, "", last, "A string with the count of each bucket that is in use.", longer},
		Most:  MaxCount, MostCost: MaxCount, Seconds: minute, Debt: "carry", Options: []string{"rate", "buckets"},
	},
	LayeredCounter: {
		Name: "sliding-counter", Need: Layers, Script: "counter", State: Count, Suffix: "%layered", Traits: Slides | Merges | Repeats,
		Words: Words{atMost, "", last, "A string with the count of each bucket that is in use.", longer},
	},
	FixedWindow: {
		Name: "fixed-window", Script: "fixed", State: Window, Suffix: "%window", Traits: Resets | Merges | Repeats,
		Words: Words{first, twice, "A call is refused while the window has no room for it, and then counts for nothing.",
			"A string with the start of the window and a count.", ""},
		Most: MaxAmount, MostCost: MaxAmount, Seconds: minute, Debt: "refuse", Options: []string{"rate"},
	},
	TokenBucket: {
		Name: "token-bucket", Script: "bucket", State: Level, Suffix: "%token", Traits: Drains | Merges | Repeats,
		Words: Words{"{calls} per {per} in the long run.", "",
			"A call is refused while the bucket has no tokens for it, and then counts for nothing.", level, lower},
		Most: MaxCount, MostCost: MaxCount, Seconds: minute, Debt: "carry", Options: []string{"rate", "burst"},
	},
	LeakyBucket: {
		Name: "leaky-bucket", Script: "bucket", State: Level, Suffix: "%leaky", Traits: Drains | Merges | Repeats,
		Words: Words{"{calls} per {per} in the long run.", "",
			"A call is refused while the bucket has no room for it, and then counts for nothing.", level, lower},
		Most: MaxCount, MostCost: MaxCount, Seconds: minute, Debt: "carry", Options: []string{"rate", "burst"},
	},
	Queue: {
		Name: "leaky-bucket", Need: Wait, Script: "bucket", State: Level, Suffix: "%queue", Traits: Drains | Queues,
		Words: Words{"{calls} per {per}, evenly spaced.", "", "", level, lower}, // the row of wait says who is refused
	},
	DividedTokens: {
		Name: "token-bucket", Need: Share, Script: Shares, State: Division, Suffix: "%shares", Traits: Drains | Divides | Merges | Repeats,
		Words: Words{"{calls} per {per} in the long run.", "",
			"A call is refused while the bucket has no tokens for it, and then counts for nothing.", division, ""},
	},
	DividedLeaky: {
		Name: "leaky-bucket", Need: Share, Script: Shares, State: Division, Suffix: "%leaky-shares", Traits: Drains | Divides | Merges | Repeats,
		Words: Words{"{calls} per {per} in the long run.", "",
			"A call is refused while the bucket has no room for it, and then counts for nothing.", division, ""},
	},
	Permits: {
		Name: "concurrency", Script: "permits", State: Permit, Suffix: "%permits", Traits: Lends | Merges | Repeats,
		EventWork: 10, EventBytes: [2]int64{20, 130},
		Words: Words{"At most {calls} in flight, over all processes.", "A call holds a permit until the method returns or panics.",
			"A call is refused while {calls} run.",
			"A sorted set with an entry for each permit. Those of a process that dies are free {window} later.", ""},
		Most: MaxLog, MostCost: MaxLogCost, Seconds: minute / 2, Debt: "carry",
		Lacks: map[string]string{
			"block":   "calls in flight end at any time, so concurrency blocks nobody: write block on a second limit, of the rate",
			"lease":   "permits of concurrency come back with every return, so none are charged ahead: remove lease, or write it on a second limit, of the rate",
			"hold":    "permits of concurrency do not know for how long nobody may call: write hold on a second limit, of the rate",
			"reserve": "permits of concurrency lapse already, a window after they were renewed: remove reserve",
			"debt":    "permits of concurrency come back with every return, so nothing is owed: remove debt",
			"meter":   "messages take no permits: remove the option, or write it on a second limit, of the rate",
			"refund":  "a permit of concurrency comes back with every return: remove the option, or write it on a second limit, of the rate",
			"settle":  "a permit of concurrency comes back with every return: remove the option, or write it on a second limit, of the rate",
		},
	},
	Calendar: {
		Name: "fixed-window", Need: Period, Script: "calendar", State: Dates, Suffix: "%calendar", Traits: Resets | Merges | Repeats,
		Words: Words{"At most {calls} in a {per}.", "{period}", refused, "A string with the end of the {per} and a count.{keep}", ""},
	},
	Reserved: {
		Name: "fixed-window", Need: Return, Script: Returns, State: Reservation, Suffix: "%reserved", Traits: Merges | Repeats,
		Words: Words{first, twice, "A call is refused while the window has no room for it, and then counts for nothing.", entries, ""},
	},
	ReservedPeriod: {
		Name: "fixed-window", Need: Return | Period, Script: Returns, State: Reservation, Suffix: "%reserved-period", Traits: Merges | Repeats,
		Words: Words{"At most {calls} in a {per}.", "{period}", refused, entries, ""},
	},
}
