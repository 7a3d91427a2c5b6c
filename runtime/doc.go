// Package runtime enforces rate limits that all processes share through Redis. The wrappers
// that rategen generates import it. Code that has no wrapper may use it directly.
//
// A [Rule] declares a limit: Max events in a Window, counted by an [Algorithm]. [rule.Rule.Limit]
// applies it to a [Key], the caller's id say, and [Limiter.Take] charges one or several such
// limits, all or none:
//
//	limiter := runtime.New(runtime.NewRedisStore(client))
//
//	var perUser = &runtime.Rule{Name: "search", Window: time.Minute, Max: 100}
//
//	decision, err := limiter.Take(ctx, perUser.Limit(runtime.NewKey().AddString(userID)))
//
// The error is nil if and only if the call may go on. A refused call returns a
// [*LimitedError]. [Limiter.Settle] corrects the charge when the real cost of the call is
// known, and [Limiter.Refund] cancels it, after an error say: keep the [Decision] for that. [Limiter.Usage] tells what is left.
// Most callers need no other method.
//
// # Guarantees of every algorithm and store
//
//   - Time is the store's own, in microseconds, and never runs before the newest event of a
//     key. Clocks of clients have no effect.
//   - No window holds more than its [Algorithm] says.
//   - A refused call changes nothing, except that it may begin a Block.
//   - Several limits on a call are charged all or none; of several slots of a cluster see
//     [RedisStore]. The error names the limit that keeps the caller out longest.
//   - A cost of n is n events. A cost above what the limit ever admits is
//     [ErrCostExceedsLimit], a cost of 0 passes unless the key is blocked or held, and a
//     negative cost or max is [ErrInvalidLimit].
//   - RetryAfter is the time until the same call would be admitted if no other call arrived,
//     and never 0.
//   - A call is charged at most once, whatever the client retries. A decision is refunded at
//     most once.
//   - A limit in [ModeShadow] mode counts calls. It delays and refuses none.
//   - Every key expires by itself once its counts have left the window.
//
// # Failures
//
// When Redis is down or gives no answer in time, the [FailurePolicy] of the rule, or that of
// [WithFailurePolicy], decides: [FailOpen], the default, lets the call pass, [FailClosed] refuses it, and
// [FailLocal] counts in this process. What was refused before stays refused, see [WithRefusalMemory]. The Source of a [Decision] says who decided, and the log says why. After
// repeated failures a circuit breaker opens, and calls no longer wait for the store.
//
// [WithReplicas] divides a limit among processes that decide alone. [WithProcessCap] bounds how
// many calls this process admits, whatever happens. [TuneRedis] sets options of a Redis client
// that shorten the effect of a failure.
//
// # While a program runs
//
// [WithEnabled] is a switch for all limits. [WithOverrides] changes limits, and a [rule.Scaler]
// adapts them to the load. [WithMemoryWatch] watches the memory of Redis. [Limiter.Close] and
// [RedisStore.Close] end the goroutines that these start.
//
// # Other packages
//
//   - A limit for each plan: perUser.Limit(key).WithMax(plan.Max) applies a rule at the max of a caller's
//     plan, see [rule.Limit]. Package runtime/rule has all fields and methods of rules, keys and limits.
//   - Tests: package runtime/ratetest has limiters whose time a test moves, whose answers it sets, and whose
//     decisions it checks. A [MemoryStore] needs no server.
//   - Who is refused: [WithObserver] takes an [observe.Observer], whose KeyRefused has the keys.
//     The command ratectl asks Redis, and runtime/ratepage has a page. Packages
//     runtime/rateprom and runtime/rateotel count refusals by rule, and the log has at most one line a second
//     for each rule: both have no keys.
//   - Answers of a server to refused requests: packages runtime/ratehttp, rategrpc and rateconnect.
//     Package runtime/wrapper says how to write an adapter for another framework.
package runtime
