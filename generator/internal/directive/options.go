package directive

import (
	"github.com/rategen/rategen/generator/internal/naming"
	"github.com/rategen/rategen/internal/spec"
)

// Options has a row for each option, in the order of the manual.
var Options = []Option{{
	Name: "key", guesses: "by keyby keys subject", ownOnly: true, Value: "PART,PART...",
	Doc:     "whose calls are counted together: Go expressions separated by commas, in which `#id` is the parameter `id` and `#0` the first",
	Default: "one budget for all callers",
	parse:   as(splitParts), unset: []string{},
	says: says{TopicKey: keySays},
}, {
	Name: "window", guesses: "per interval period duration time ttl every timewindow", counts: true, Value: "DURATION",
	Doc:      "the time that `max` refers to, `1ms` to `366d`; for `concurrency`, after which the permits of a process that died are free; like `burst`, `wait` and `block` also a Go constant, such as `config.Window`",
	Default:  "`60s`, for `concurrency` `30s`",
	constant: durations(spec.MinWindow, spec.MaxWindow, "between 1ms and 366d"), unset: (*Settings).Window,
}, {
	Name: "max", guesses: "limit limits count requests calls quota n burstmax maxcalls", counts: true, Value: "INTEGER",
	Doc:     "calls admitted in a window, or in flight, 1 to 1,000,000 for `sliding-log` and `concurrency`, and to 10¹² for the others, or a Go integer expression such as `#plan.PerMinute`",
	Default: "`100`",
	parse:   expression, constant: integers(1, spec.MaxCount), unset: defaultMaxText,
	says: says{TopicLimit: maxSays},
}, {
	Name: "rate", guesses: "ratelimit speed qps rps", counts: true, Value: "MAX/WINDOW",
	Doc:     "short for `max` and `window`: `rate=5/10s` is `max=5 window=10s`, and `rate=100/s` is `max=100 window=1s`",
	Default: "`max` and `window`",
	parse:   as(parseRate), fits: rateFits,
	algorithms: ratesOf(algorithms),
}, {
	Name: "algorithm", guesses: "algo strategy kind method", counts: true, Value: "NAME",
	Doc:     "how calls are counted: `sliding-log`, which is exact, " + otherAlgorithms() + ", which counts calls in flight",
	Default: "`sliding-log`",
	parse:   text(parseAlgorithm), unset: spec.SlidingLog,
	field: "Algorithm", code: algorithmCode,
	says: says{TopicLimit: algorithmSays, TopicRefusal: refusalSays, TopicRedis: stateSays},
}, {
	Name: "storage", counts: true, Value: "zset|packed",
	Doc:     "how Redis keeps a `sliding-log`: `zset` is easy to look at, `packed` is smallest and least work",
	Default: "`zset`", algorithms: []string{spec.SlidingLog},
	parse: text(parseStorage), unset: "zset",
	field: "Storage", code: names{"packed": {naming.RuntimePath, "Packed"}}.code,
	says: says{TopicRedis: storageSays},
}, {
	Name: "resolution", guesses: "precision granularity", counts: true, Value: "DURATION",
	Doc:     "times in a `sliding-log` fall to the start of a time slice of this length, and leave the window together",
	Default: "exact", algorithms: []string{spec.SlidingLog},
	parse: text(parseResolution), fits: resolutionFits,
	field: "Resolution",
	says:  says{TopicLimit: resolutionSays},
}, {
	Name: "buckets", counts: true, Value: "N|NxM|auto",
	Doc:     "how a `sliding-counter` divides its window: `60` equal buckets, `6x10` layered ones, or `auto`, as wide as the traffic allows",
	Default: "`60`", algorithms: []string{spec.SlidingCounter},
	parse: text(parseBuckets),
	field: "Buckets", code: bucketsCode,
	says: says{TopicLimit: bucketsSays},
}, {
	Name: "burst", guesses: "capacity size bucketsize", counts: true, Value: "INTEGER",
	Doc:     "calls that a `token-bucket` or `leaky-bucket` admits at once, or that may wait in its line, 1 to 10¹²",
	Default: "`max`, or as many as `wait` lets in", algorithms: []string{spec.TokenBucket, spec.LeakyBucket},
	constant: integers(1, spec.MaxCount),
	field:    "Burst",
	says:     says{TopicLimit: burstSays},
}, {
	Name: "cost", guesses: "weight tokens units", ownOnly: true, Value: "INTEGER",
	Doc:     "how many calls this one counts as, 1 to 250 for `sliding-log` and `concurrency`, or a Go integer expression such as `len(#items)`",
	Default: "`1`",
	parse:   expression, unset: "1",
	says: says{TopicLimit: costSays},
}, {
	Name: "when", guesses: "if cond condition onlyif", ownOnly: true, Value: "CONDITION",
	Doc:     "Go boolean expression; while it is false the limit is not applied",
	Default: "always applied",
	parse:   expression,
	says:    says{TopicLimit: whenSays},
}, {
	Name: "prefix", Value: "TEXT",
	Doc:     "start of the Redis key",
	Default: "`rate_limit:<package>.<Interface>.<Method>:`",
	parse:   printable(120),
}, {
	Name: "name", guesses: "id rule label", Value: "TEXT",
	Doc:     "the rule's name in errors, logs and metrics",
	Default: "`<package>.<Interface>.<Method>`",
	parse:   printable(120),
}, {
	Name: "message", guesses: "msg error text", Value: "TEXT",
	Doc:     "text of the error of a refused call",
	Default: "`rate limit exceeded`",
	parse:   printable(1000),
	field:   "Message", behind: true,
}, {
	Name: "fail", guesses: "failure onfailure onerror failpolicy failopen failclosed", Value: "open|closed|local",
	Doc:     "what happens when Redis gives no answer: `open` lets the call pass, `closed` refuses it, `local` lets this process decide alone",
	Default: "the limiter's policy, `open`",
	parse:   oneOf("open", "closed", "local"),
	field:   "Fail", code: failCode, behind: true,
	says: says{TopicFailure: failSays},
}, {
	Name: "wait", guesses: "timeout delay maxwait", Value: "DURATION",
	Doc:      "how long a call may wait for its turn, the context's deadline permitting; a `leaky-bucket` then spaces calls evenly",
	Default:  "`0s`",
	constant: durations(0, spec.MaxWindow, "between 0s and 366d"),
	field:    "Wait", code: aboveZero,
	says: says{TopicRefusal: waitSays},
}, {
	Name: "block", guesses: "ban penalty cooldown blockfor", counts: true, Value: "DURATION",
	Doc:      "for how long a caller that is denied stays denied, from that denial on; further tries do not extend it",
	Default:  "`0s`, until there is room",
	constant: durations(spec.MinWindow, spec.MaxWindow, "between 1ms and 366d; leave the option out for callers that are not blocked"), fits: blockFits,
	field: "Block",
	says:  says{TopicRefusal: blockSays},
}, {
	Name: "lease", counts: true, Value: "DURATION",
	Doc:     "for keys with more calls than one Redis decides: for so long a process admits calls by itself, from what it has charged ahead; it costs that part of the window of the rate",
	Default: "`0s`, Redis decides every call",
	parse:   text(parseLease), fits: leaseFits,
	field: "Lease",
	says:  says{TopicLimit: leaseSays},
}, {
	Name: "mode", guesses: "dryrun shadow soft", Value: "enforce|soft|shadow",
	Doc:     "`shadow` counts calls and refuses none, to try a limit out; `soft` does so and tells the method, which may do less: see `runtime.Exceeded`; `enforce` refuses them",
	Default: "`enforce`",
	parse:   oneOf("enforce", "soft", "shadow"), unset: "enforce",
	field: "Mode", code: names{"soft": {naming.RuntimePath, "Soft"}, "shadow": {naming.RuntimePath, "Shadow"}}.code,
	says: says{TopicRefusal: modeSays},
}, {
	Name: "adaptive", Value: "SIGNAL,SIGNAL...",
	Doc:     "`cpu`, `memory`, `latency` or several of them: the max follows how busy the process is, from half to one and a half times `max`",
	Default: "fixed",
	parse:   as(parseSignals),
	field:   "Adaptive", code: adaptiveCode, behind: true,
	says: says{TopicLimit: adaptiveSays},
}, {
	Name: "refund", guesses: "giveback undo", ownOnly: true, Value: "CONDITION",
	Doc:     "Go boolean expression over parameters and results; if it is true when the call returns, the charge is given back; `#err` is the error, `#result` the first result",
	Default: "charges stay",
	parse:   expression, fits: ratesOnly,
	says: says{TopicEnd: refundSays},
}, {
	Name: "settle", guesses: "actual actualcost realcost", ownOnly: true, Value: "INTEGER",
	Doc:     "Go integer expression over parameters and results, such as `#result.Usage.Total`: what the call really cost; the difference to `cost` is given back, or charged on top; a negative value means that it is not known, and `cost` stays",
	Default: "`cost` stays",
	parse:   expression, fits: ratesOnly,
	says: says{TopicEnd: settleSays},
}, {
	Name: "deny", guesses: "fallback ondeny onlimit reject", ownOnly: true, Value: "CALL",
	Doc:     "Go call expression; the method returns what it gives when this limit refuses the call, in which `#err` is the refusal",
	Default: "the error, or an HTTP answer",
	parse:   expression,
}, {
	Name: "ctx", guesses: "context", ownOnly: true, Value: "CONTEXT",
	Doc:     "the call's context, a Go expression such as `#c.Request().Context()`",
	Default: "a parameter that is one, or has a method `Context()`",
	parse:   expression,
}, {
	Name: "type", guesses: "typename wrapper", ownOnly: true, Value: "NAME",
	Doc:     "name of the generated type, whose constructor is then `New` and this name; one line of an interface suffices",
	Default: "`RateLimited<Interface>`",
	parse:   text(parseTypeName),
}, {
	Name: "except", guesses: "exclude skip without ignore", ownOnly: true, Value: "METHOD,METHOD...",
	Doc:     "on an interface's line: methods that it leaves out",
	Default: "none left out", onInterface: true,
	parse: as(splitParts),
	says:  says{TopicLimit: exceptSays},
}, {
	Name: "only", guesses: "include methods for", ownOnly: true, Value: "METHOD,METHOD...",
	Doc:     "on an interface's line: the methods that it applies to, in place of `except`",
	Default: "all methods", onInterface: true,
	parse: as(splitParts), fits: onlyFits,
	says: says{TopicLimit: onlySays},
}, {
	Name: "replace", guesses: "instead override overrides replaces insteadof", ownOnly: true, Value: "all|NAME",
	Doc:     "on a method's line: this limit takes the place of all limits of its interface, or of the one with that name, and is not added to them",
	Default: "added to them", onMethod: true,
	parse: printable(120),
	says:  says{TopicLimit: replaceSays},
}, {
	Name: "use", guesses: "policy uses with", ownOnly: true, Value: "POLICY",
	Doc:     "the limit that a line `//ratelimit:policy name=POLICY …` declares in the package, or in another one, as in `use=limits.api`: all that use it count together",
	Default: "a limit of its own",
	parse:   text(parsePolicy),
	says:    says{TopicLimit: useSays},
}}
