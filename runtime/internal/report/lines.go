package report

import "log/slog"

// A Line is a line of the log that somebody must act on. Its code stands in the line, and
// in docs/troubleshooting.md, which says what to do. Help, where it is short, stands in both.
type Line struct {
	number           int // among all
	level            slog.Level
	code, text, help string
	fades            bool // it is over when nobody says it any more
}

// lines are all of them.
var lines []Line

// Codes returns the codes of all lines, for tests of the manual.
func Codes() (codes []string) {
	for _, l := range lines {
		codes = append(codes, l.code)
	}
	return codes
}

func warning(code, text string) Line { return finding(slog.LevelWarn, code, text, "") }

func finding(level slog.Level, code, text, help string) Line {
	lines = append(lines, Line{number: len(lines), level: level, code: code, text: text, help: help})
	return lines[len(lines)-1]
}

func fading(code, text, help string) Line {
	l := finding(slog.LevelWarn, code, text, help)
	l.fades = true
	return l
}

// The lines of what happens in limiters and stores.
var (
	Unsettled   = warning("unsettled", "a decided call could not be settled: its cost stays as it was reserved")
	NotRenewed  = warning("not_renewed", "what calls hold was not renewed by its store")
	BreakerOpen = warning("breaker_open", "rate limit store not responding: circuit breaker open")
	SteppedBack = warning("clock_stepped_back",
		"the clock of the rate limit store stepped back: keys may refuse calls for up to a window, and those used more than a window ahead count anew")
	SteppedForward = warning("clock_stepped_forward",
		"the clock of the rate limit store stepped forward, or this machine was suspended: what counts leaves its window as much sooner, so that keys may admit what they admit at worst once more")
	ShortOfMemory = warning("short_of_memory", "redis is short of memory")
	MemoryUnknown = warning("memory_unknown", "redis does not say how much memory it uses")
	Held          = warning("held", "calls are held back, as the results of a call ask")
	HeldAlone     = warning("held_alone", "calls are held back by this process alone")
	Panicked      = finding(slog.LevelError, "panic", "panic in a function that the rate limiter was given", "")
)

// The lines of what is declared and does not hold, which are findings too.
var (
	Undecided = fading("undecided", "rate limit not decided by its store",
		"see the class of the error: until it is mended the failure policy decides")
	LineFull = fading("line_full", "100,000 calls of this process wait for room of one key: further ones are refused at once",
		"give these calls a shorter wait, or a key for each caller")
	Sharded = finding(slog.LevelError, "sharded",
		"keys are sharded by a proxy: calls of a batch are counted on the wrong server, limits do not hold",
		"connect to the servers directly, or with a redis.Ring or redis.ClusterClient")
	ReadsTooLong = finding(slog.LevelWarn, "reads_too_long",
		"limits may stay off long after Redis was away: the client waits too long for an answer",
		"make the client's options by runtime.TuneRedis")
	Evicted = finding(slog.LevelWarn, "evicted",
		"redis has dropped keys for want of memory: callers whose counts were among them have their whole limits again",
		"give Redis more memory, or the policy noeviction")
	BudgetAtRisk = finding(slog.LevelWarn, "budget_at_risk", "a limit is counted in a redis that may lose it",
		"set maxmemory-policy noeviction and appendonly yes, have a ledger restore periods, or accept it")
	LedgerBehind = finding(slog.LevelWarn, "ledger_behind", "what is used is not written to the ledger: it waits in redis, for 35 days",
		"run the ledger of package rateledger in every process, and see what it logs")
	LedgerShared = finding(slog.LevelError, "ledger_shared", "two rules start their keys alike, and the ledger bills their calls to the first",
		"give both one name, or each a prefix of its own")
	EmptyPart = finding(slog.LevelWarn, "empty_part",
		"a part of a rate limit's key is empty: all callers that lack it share one limit",
		"key by what every caller has, or leave others out by when=")
	InvalidKey = finding(slog.LevelWarn, "invalid_key",
		"a key of a rate limit cannot be built: all callers that lack the same part share one limit",
		"key by what is never nil, or say by invalid= what such callers get")
	SharedKey = finding(slog.LevelWarn, "shared_key",
		"a rate limit in shadow mode is not counted for calls that have another limit on its key",
		"give it a prefix of its own")
	Hidden = finding(slog.LevelWarn, "hidden_refusal",
		"a refused call was answered as something else, and the client got that: it cannot know that it is over a limit, or when to come back",
		"return the refusal's error as it is or wrapped, or answer with 429, 500 or RESOURCE_EXHAUSTED")
	Rejected = finding(slog.LevelWarn, "overrides_rejected",
		"overrides of rate limits rejected, the last good ones stay in force",
		"correct the override that the error names")
	Unread = finding(slog.LevelWarn, "overrides_unread",
		"overrides of rate limits cannot be read, the last good ones stay in force",
		"see the error: the source does not answer, or may not be read")
	Unmet = finding(slog.LevelWarn, "overrides_unmet", "overrides name rules that no call has used",
		"correct the names, unless another program has the rules")
	UnfitKeys = finding(slog.LevelWarn, "override_keys_unfit",
		"overrides are for keys of another form than those of the rule's calls: they meet nobody",
		"write a key as ratectl keys shows it: with as many parts, and addresses as the rule counts them")
	OverrideOver = finding(slog.LevelWarn, "override_over",
		"an override had expired when its file was read: it is not in force",
		"take it out of the file, or give it an until to come")
	MemoryOfReplicas = finding(slog.LevelWarn, "memory_store_replicas",
		"limits are counted in memory, and this service has several replicas: each admits as much as its rules say",
		"use a RedisStore, or divide the max of each rule by the number of replicas")
	KeysForgotten = finding(slog.LevelWarn, "keys_forgotten",
		"limits in memory are full: keys were forgotten that still counted, their callers have their whole limits again",
		"raise max_keys by the option that is named")
	NoStore = finding(slog.LevelWarn, "no_store",
		"the limiter has no store: nothing is counted, the failure policy decides every call",
		"give runtime.New a store, or switch the limits off by runtime.WithEnabled")
	ReportRefused = finding(slog.LevelWarn, "report_refused",
		"redis does not let this process report what it has in force: ratectl cannot tell whether a change is",
		"give its user +hset +hdel and the keys rate_limit:{processes}:* of the namespace, or switch that off by runtime.WithoutReports")
	Unused = finding(slog.LevelWarn, "limiter_unused", "the limiter has rules, and no call has met any for a minute",
		"hand out the generated wrapper, or put the middleware around the handler, in place of what it wraps")
	Closed = finding(slog.LevelWarn, "limiter_closed",
		"the limiter is closed, and calls still come: permits are not renewed, and overrides and factors stay as they were",
		"close the limiter when the program ends, after the servers")
	ManyLimiters = fading("many_limiters",
		"a hundred limiters have one store, or one rule in memories of their own, as if each request had made one",
		"make one limiter when the program starts, and close what is not needed any more")
	TwoStores = finding(slog.LevelWarn, "two_stores",
		"two stores of this process have one client: what calls on one give back the next call on the other finds a millisecond later, and may be refused",
		"make one store for all limiters of the program")
	Namespaces = finding(slog.LevelWarn, "two_namespaces",
		"limiters on one store have namespaces whose names are alike: a rule counts in each of them by itself",
		"write runtime.WithNamespace alike everywhere")
	IdleBlock = finding(slog.LevelWarn, "idle_block",
		"a rule that refuses nobody has a block, which begins for nobody: it reports less than it would refuse",
		"leave the block out until the rule's mode is enforce")
	RuleChanged = finding(slog.LevelWarn, "rule_changed",
		"a rule was changed after it was registered: that is not in force",
		"declare another rule, or change this one by an override")
	DistinctKeys = finding(slog.LevelWarn, "distinct_keys",
		"of a thousand calls each had a key of its own, while all of them still counted: the limit has counted nobody twice",
		"leave what differs from call to call out of the key, such as a port, a time or the id of a request")
	WrappedTwice = finding(slog.LevelWarn, "wrapped_twice",
		"calls pass a generated wrapper within another of the same limiter: each is charged twice",
		"pass the service itself to the constructor, and not what the constructor returns")
	NothingCharged = finding(slog.LevelWarn, "nothing_charged",
		"each of the first thousand calls has cost nothing: the limit has counted none",
		"see what cost= is for these calls")
	NoPeer = finding(slog.LevelWarn, "no_peer",
		"a request that goes out fits no peer's pattern: it is sent without a limit",
		"add a peer for its host, or say by rateclient.WithOthers what becomes of such requests")
	Contradiction = finding(slog.LevelWarn, "contradiction",
		"a peer has served a request, and said that its limit is 0: what it says of that limit is ignored",
		"have the gateway in front of it send no such fields")
	UnnamedLimit = finding(slog.LevelWarn, "limit_unnamed",
		"a peer may set a limit by rateclient's Most, and a hundred answers in a row have named none with the window of the rule: the rule's max holds",
		"give the rule the window that the peer names, or leave Least and Most out")
	NoWeight = fading("share_weight", "the weight of a share is not between 1 and 1,000,000: its calls are errors",
		"see what weight= is for these calls: that of an empty plan is 0, for instance")
	AllRefunded = finding(slog.LevelWarn, "all_refunded",
		"each of the first thousand calls was given back: the limit has kept none",
		"see when refund= is true, and what settle= returns")
)

// The lines of what stands between clients and limits.
var (
	UntrustedProxy = finding(slog.LevelWarn, "untrusted_proxy",
		"a request has a forwarding header, but no proxy is trusted: all clients behind a proxy share one limit",
		"name your proxies with ratehttp.WithTrustedProxies, or have them remove the header")
	OtherHeader = finding(slog.LevelWarn, "other_header",
		"a trusted proxy has sent another forwarding header than the one that it is trusted for: all its clients share one limit",
		"name that header to ratehttp.WithTrustedProxies, or have the proxy write the other one")
	UntrustedPeer = finding(slog.LevelWarn, "untrusted_peer",
		"a hundred requests had the header of the trusted proxies, and none came from one of these: all clients behind what sent them share one limit",
		"name the networks that the proxies connect from to ratehttp.WithTrustedProxies")
	AddressKey = finding(slog.LevelWarn, "address_key",
		"the key of a request is its RemoteAddr, which has the port: each connection has a limit of its own",
		"return ratehttp.ClientIP(r.Context()), or leave Key nil")
	UnknownPeer = finding(slog.LevelWarn, "unknown_peer", "a connection has no address: all such clients share one limit",
		"if a trusted proxy connects over a Unix socket, add ratehttp.WithTrustedUnixSocket")
	NoAddress = finding(slog.LevelWarn, "no_address",
		"a trusted proxy has named a client by what is no address: all such clients share one limit",
		"have the proxy write the address that it was called from")
	NoClient = finding(slog.LevelWarn, "no_client",
		"ratehttp.ClientIP was called with a context that has no client: all such calls share one limit",
		"put ratehttp.Middleware around the server's handler, and hand the request's context on")
	EmptyKey = finding(slog.LevelWarn, "empty_key", "the key of a request is empty: all such requests share one limit",
		"return what tells callers apart, such as ratehttp.ClientIP(r.Context()), where a caller has no name")
	LimitedTwice = finding(slog.LevelWarn, "limited_twice",
		"a request has passed the same limit twice, and was charged twice",
		"put each ratehttp.RequestLimit into the chain once")
	MiddlewareTwice = finding(slog.LevelWarn, "middleware_twice",
		"a request has passed ratehttp.Middleware twice: the inner one and its options have no effect",
		"put ratehttp.Middleware around the server's handler once")
	SamePolicyName = finding(slog.LevelWarn, "same_policy_name",
		"two rules have the same public name: clients cannot tell them apart by it",
		"name them with WithPolicy")
	PolicyUnmet = finding(slog.LevelWarn, "policy_unmet",
		"a policy is for a rule whose name differs in case: it has no effect",
		"write the name as the rule has it")
	MethodUnmet = finding(slog.LevelWarn, "method_unmet",
		"a limit is for a service that the program has not: no call is ever charged for it",
		"write the method as the .proto file has it, /package.Service/Method")
	PartitionPanicked = finding(slog.LevelWarn, "partition_key_panic",
		"the function of ratehttp.WithPartitionKey panicked: the fields have no partition key",
		"return an empty string for requests without one")
	CorsInside = finding(slog.LevelWarn, "cors_inside",
		"a request of another origin was refused without Access-Control-Allow-Origin: its script sees a network error, and neither the status nor Retry-After",
		"put the CORS middleware around ratehttp.RequestLimit and all handlers that are limited")
)
