package report

import "log/slog"

// A Line is a line of the log that somebody must act on. Its code stands in the line, and
// in docs/troubleshooting.md, which says what to do.
type Line struct {
	level      slog.Level
	code, text string
}

// lines are all of them.
var lines []Line

func warning(code, text string) Line { return line(slog.LevelWarn, code, text) }

func line(level slog.Level, code, text string) Line {
	lines = append(lines, Line{level, code, text})
	return lines[len(lines)-1]
}

// The lines of limiters and stores.
var (
	Undecided        = warning("undecided", "rate limit not decided by its store")
	Unsettled        = warning("unsettled", "a decided call could not be settled: its cost stays as it was reserved")
	NotRenewed       = warning("not_renewed", "what calls hold was not renewed by its store")
	BreakerOpen      = warning("breaker_open", "rate limit store not responding: circuit breaker open")
	SteppedBack      = warning("clock_stepped_back", "the clock of the rate limit store stepped back: keys may deny calls for up to a window, and those used more than a window ahead count anew")
	Sharded          = line(slog.LevelError, "sharded", "keys are sharded by a proxy: calls of a batch are counted on the wrong server, limits do not hold; connect to the servers directly, or with a redis.Ring or redis.ClusterClient")
	ReadsTooLong     = warning("reads_too_long", "limits may stay off long after Redis was away: the client waits too long for an answer")
	ShortOfMemory    = warning("short_of_memory", "redis is short of memory")
	Evicted          = warning("evicted", "redis has dropped keys for want of memory: callers whose counts were among them have their whole limits again")
	BudgetAtRisk     = warning("budget_at_risk", "a limit of a day or longer is counted in a redis that may lose it")
	MemoryUnknown    = warning("memory_unknown", "redis does not say how much memory it uses")
	Held             = warning("held", "calls are held back, as the results of a call ask")
	HeldAlone        = warning("held_alone", "calls are held back by this process alone")
	EmptyPart        = warning("empty_part", "a part of a rate limit's key is empty: all callers that lack it share one limit")
	InvalidKey       = warning("invalid_key", "a key of a rate limit cannot be built: all callers that lack the same part share one limit")
	SharedKey        = warning("shared_key", "a rate limit in shadow mode is not counted for calls that have another limit on its key: give it a prefix of its own")
	Hidden           = warning("hidden_refusal", "a refused call was answered as something else: its client cannot know that it is over a limit, or when to come back")
	Rejected         = warning("overrides_rejected", "overrides of rate limits rejected, the last good ones stay in force")
	Unread           = warning("overrides_unread", "overrides of rate limits cannot be read, the last good ones stay in force")
	Unmet            = warning("overrides_unmet", "overrides name rules that no call has used: check the names")
	MemoryOfReplicas = warning("memory_store_replicas", "limits are counted in memory, and this service has several replicas: each admits as much as its rules say")
	KeysForgotten    = warning("keys_forgotten", "limits in memory are full: keys were forgotten that still counted, their callers have their whole limits again")
	Panicked         = line(slog.LevelError, "panic", "panic in a function that the rate limiter was given")
)
