// Package runtime decides calls by rate limits that all processes share through
// Redis. It is what the decorators import that rategen generates; code that has
// no decorator may use it directly.
//
// A [Rule] declares a limit: Max events in a Window, counted by an [Algorithm].
// [Rule.Limit] applies it to a [Key], the caller's id say, and [Limiter.Take]
// charges one or several such limits, all or none:
//
//	limiter := runtime.New(runtime.NewRedisStore(client))
//
//	var perUser = &runtime.Rule{Name: "search", Prefix: "search:", Window: time.Minute, Max: 100}
//
//	_, err := limiter.Take(ctx, perUser.Limit(runtime.NewKey().AddString(userID)))
//
// The error is nil if and only if the call may go on. A denial is a
// [*LimitedError], which says when to come back.
//
// # What holds for every algorithm and store
//
//   - The window at the time t is (t-Window, t]: an event exactly one Window
//     old has left it. Time is the store's own, in microseconds, and never runs
//     before the newest event of a key; clocks of clients have no effect.
//   - A denied call changes nothing.
//   - Several limits on a call are charged all or none. The error names the one
//     that keeps the caller out longest.
//   - A cost of n is n events. A cost above what the limit ever admits is
//     [ErrCostExceedsLimit], a cost of 0 passes, and a negative cost or max is
//     [ErrInvalidLimit].
//   - RetryAfter is the time until the same call would be admitted if nobody
//     else came, and never 0.
//   - A call is charged at most once, whatever the client retries.
//   - Every key expires by itself once it means nothing.
//
// # Failures
//
// When the store gives no answer in time the rule's [FailurePolicy] decides;
// by default the call goes on. [Decision] says who decided, and a log line a
// second for each rule says why. [WithReplicas] shares a limit out among
// processes that decide alone, and [WithProcessCap] bounds what this one lets
// through whatever happens. [TuneRedis] sets the options of a Redis client with
// which limits are in force again sooner.
//
// # While a program runs
//
// [WithEnabled] is a switch for all limits, [WithOverrides] changes single ones,
// by a source such as those of package runtime/override, and a rule that is
// Adaptive follows how busy things are, by a [Scaler] such as that of package
// runtime/adaptive. An [Observer] is told what is decided and what fails,
// [WithMemoryWatch] looks at the memory of Redis, and [RedisStore.Survey] at the
// keys in it. [Limiter.Close] and [RedisStore.Close] end what these have started.
//
// # Stores
//
// [RedisStore] shares limits between processes. [MemoryStore] decides exactly
// alike within one, and needs nothing: use it in tests. A Store of your own
// must pass package storetest.
package runtime
