// Package runtime decides calls by rate limits that all processes share through
// Redis. The decorators that rategen generates import it. Code that has no
// decorator may use it directly.
//
// A [Rule] declares a limit: Max events in a Window, counted by an [Algorithm].
// [Rule.Limit] applies it to a [Key], the caller's id say, and [Limiter.Take]
// charges one or several such limits, all or none:
//
//	limiter := runtime.New(runtime.NewRedisStore(client))
//
//	var perUser = &runtime.Rule{Name: "search", Window: time.Minute, Max: 100}
//
//	_, err := limiter.Take(ctx, perUser.Limit(runtime.NewKey().AddString(userID)))
//
// The error is nil if and only if the call may go on. A denial is a
// [*LimitedError], which has the time until the call would be admitted.
// [Limiter.Refund] gives a charge back, once.
//
// # Guarantees of every algorithm and store
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
//   - RetryAfter is the time until the same call would be admitted if no other
//     call arrived, and never 0.
//   - A call is charged at most once, whatever the client retries. A decision is
//     refunded at most once.
//   - A limit in [Shadow] mode counts calls. It delays and refuses none.
//   - Every key expires by itself once its counts have left the window.
//
// # Failures
//
// When the store gives no answer in time, the rule's [FailurePolicy] decides. By
// default the call goes on. The Source of a [Decision] is who decided, and the
// log has one line a second for each rule with the reason. [WithReplicas] divides
// a limit among processes that decide alone. [WithProcessCap] bounds how many
// calls this process admits whatever happens. [TuneRedis] sets the options of a
// Redis client with which limits are in force again sooner.
//
// # While a program runs
//
// [WithEnabled] is a switch for all limits. [WithOverrides] changes single ones,
// from a source such as those of package runtime/override. An Adaptive rule
// follows the load, by a [Scaler] such as that of package runtime/adaptive.
//
// An [Observer] receives decisions and failures. [WithRecorder] has one request's
// middleware see every limit that the request met. [WithMemoryWatch] watches the
// memory of Redis, and [RedisStore.Survey] counts the keys in it.
// [Limiter.Close] and [RedisStore.Close] end the goroutines that these start.
//
// # Stores
//
// [RedisStore] shares limits between processes. [MemoryStore] decides exactly
// alike within one process, and needs no server: use it in tests. A Store of your
// own must pass the tests of package storetest.
package runtime
