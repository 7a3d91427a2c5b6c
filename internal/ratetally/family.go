package ratetally

// A Kind says how the values of a family change.
type Kind uint8

const (
	// Counter values only rise.
	Counter Kind = iota
	// Gauge values rise and fall.
	Gauge
	// Histogram values are distributions.
	Histogram
)

// A Family is a metric under its name and in its unit of OpenTelemetry. In
// Prometheus dots are underscores, and the unit and "total" end the name.
type Family struct {
	Name   string
	Kind   Kind
	Unit   string // s, By, or an annotation such as {decision}
	Help   string
	Labels []string
}

// The families that [Tally.Collect] emits.
var (
	Decisions    = &Family{"rategen.decisions", Counter, "{decision}", "Decisions about limits. A call counts once for each of its limits.", []string{"rule", "verdict", "source"}}
	cost         = &Family{"rategen.cost", Counter, "{event}", "Cost of the calls that were decided.", []string{"rule", "verdict"}}
	nearLimit    = &Family{"rategen.near_limit", Counter, "{decision}", "Decisions that found at least 0.8 of the limit used, refusals included.", []string{"rule"}}
	thresholds   = &Family{"rategen.thresholds", Counter, "{key}", "Keys that have used 80 or 100 percent of a period of the calendar, each once a period over all processes.", []string{"rule", "percent"}}
	failures     = &Family{"rategen.failures", Counter, "{failure}", "Limits that the store did not decide, by class of error and the failure policy that decided instead.", []string{"rule", "class", "policy"}}
	hidden       = &Family{"rategen.hidden_refusals", Counter, "{refusal}", "Refused calls whose client was told of something else.", []string{"rule"}}
	served       = &Family{"rategen.served_refusals", Counter, "{refusal}", "Refused calls whose client was told of a success all the same.", []string{"rule"}}
	breakerOpen  = &Family{"rategen.breaker.open", Gauge, "", "1 while the circuit breaker of a node is open.", []string{"node"}}
	overridden   = &Family{"rategen.overrides", Gauge, "{rule}", "Rules that the overrides in force are for.", nil}
	overridesUse = &Family{"rategen.overrides.used", Counter, "{decision}", "Decisions by limits that an override of the rule or of the key has changed.", []string{"rule"}}
	rejected     = &Family{"rategen.overrides.rejected", Counter, "{rejection}", "Overrides that were read and rejected. The same error counts once a minute.", nil}
	unread       = &Family{"rategen.overrides.unread", Gauge, "", "1 while the overrides cannot be read, and the last good ones stay in force.", nil}
	notInForce   = &Family{"rategen.not_in_force", Gauge, "{finding}", "What is declared and does not hold, by the code that the manual explains.", []string{"code", "rule"}}
	factor       = &Family{"rategen.adaptive.factor", Gauge, "", "Factor that multiplies the max of an adaptive rule.", []string{"rule"}}
	memoryUsed   = &Family{"rategen.redis.memory.used", Gauge, "By", "Memory that Redis uses. On a cluster it is that of the fullest master.", nil}
	memoryMax    = &Family{"rategen.redis.memory.max", Gauge, "By", "Memory that Redis may use.", nil}
	evicted      = &Family{"rategen.redis.evicted", Counter, "{key}", "Keys that Redis has dropped for want of memory, of whichever program. Each process that watches its memory counts them.", nil}
	panics       = &Family{"rategen.panics", Counter, "{panic}", "Contained panics in functions that the limiter was given.", []string{"in"}}
	buildInfo    = &Family{"rategen.build.info", Gauge, "", "1, with the version of rategen that the program is built with.", []string{"version"}}
	ruleInfo     = &Family{"rategen.rule.info", Gauge, "", "1 for each registered rule, with its algorithm and its mode as declared.", []string{"rule", "algorithm", "mode"}}
	ruleEnforced = &Family{"rategen.rule.enforced", Gauge, "", "1 while the rule refuses calls, 0 while it is in shadow mode or switched off.", []string{"rule"}}
	ruleLimit    = &Family{"rategen.rule.limit", Gauge, "", "Max of the rule, with its override and its adaptive factor.", []string{"rule"}}
	ruleWindow   = &Family{"rategen.rule.window", Gauge, "s", "Window of the rule, with its override.", []string{"rule"}}
	inFlight     = &Family{"rategen.permits.in_flight", Gauge, "{permit}", "Permits of concurrency limits that the calls of this process hold.", []string{"rule"}}
	leased       = &Family{"rategen.lease.units", Gauge, "{unit}", "Units that this process has charged in advance by leases, and that no call has used yet.", []string{"rule"}}
	waitingNow   = &Family{"rategen.waiting", Gauge, "{call}", "Calls of this process that wait for their turn.", []string{"rule"}}
	waitCount    = &Family{"rategen.waits", Counter, "{call}", "Calls that have waited for their turn, and whether they went on.", []string{"rule", "admitted"}}
	waitTime     = &Family{"rategen.wait.time", Counter, "s", "Time that calls have waited for their turn in all.", []string{"rule"}}
	peerRefusals = &Family{"rategen.peer_refusals", Counter, "{refusal}", "Calls that went out and that their peer has refused.", []string{"rule"}}
	heldFor      = &Family{"rategen.held", Gauge, "s", "For how long this process goes on to hold back calls on a key of the rule: the longest, as peers have asked. 0 if it does not.", []string{"rule"}}
)

// Families are all that [Tally.Collect] emits.
var Families = []*Family{
	Decisions, cost, nearLimit, thresholds, hidden, served, failures, breakerOpen, overridden, overridesUse, rejected, unread, notInForce, factor, memoryUsed, memoryMax, evicted, panics, buildInfo,
	ruleInfo, ruleEnforced, ruleLimit, ruleWindow, inFlight, leased, waitingNow, waitCount, waitTime, peerRefusals, heldFor,
}

// Duration is a histogram, which each adapter keeps in its own way.
var Duration = &Family{"rategen.decision.duration", Histogram, "s",
	"Time that decisions took which waited for the store, 10 µs or more. A call counts once for each of its limits.",
	[]string{"source"}}

// DurationBounds are the upper bounds of the buckets of [Duration] in seconds.
var DurationBounds = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1}
