package main

// A panel is one picture of the dashboard.
type panel struct {
	title, about string
	kind         string // of Grafana
	unit         string // of Grafana
	width        int    // of 24
	stack        bool
	queries      []query
}

// A query is an expression and the name that Grafana gives to each of its series.
type query struct{ expr, legend string }

// The selections of the dashboard's variables.
const (
	ofJob  = `job=~"$job"`
	ofRule = `job=~"$job",rule=~"$rule"`
	window = `[$__rate_interval]`
)

// perRule returns the rate of a counter by rule.
func perRule(metric, matchers string) string {
	if matchers != "" {
		matchers = "," + matchers
	}
	return `sum by (rule) (rate(` + metric + `{` + ofRule + matchers + `}` + window + `))`
}

const undecided = `source=~"failure|local"`

// rows are the panels of the dashboard by the heading above them.
var rows = []struct {
	title  string
	panels []panel
}{
	{"Who is refused", []panel{
		{"Decisions", "Decisions about limits a second.", "stat", "reqps", 6, false, []query{
			{`sum(rate(rategen_decisions_total{` + ofRule + `}` + window + `))`, ""}}},
		{"Refused", "Share of all decisions that denied the call.", "stat", "percentunit", 6, false, []query{
			{`sum(rate(rategen_decisions_total{` + ofRule + `,verdict="denied"}` + window + `)) / (sum(rate(rategen_decisions_total{` + ofRule + `}` + window + `)) > 0) or vector(0)`, ""}}},
		{"Undecided by Redis", "Decisions a second that the failure policy or this process made, since Redis did not.", "stat", "reqps", 6, false, []query{
			{`sum(rate(rategen_decisions_total{` + ofRule + `,` + undecided + `}` + window + `))`, ""}}},
		{"Open breakers", "Circuit breakers that are open, over all processes and nodes.", "stat", "none", 6, false, []query{
			{`sum(rategen_breaker_open{` + ofJob + `})`, ""}}},
		{"Refused share by rule", "Share of the decisions by a rule that denied the call.", "timeseries", "percentunit", 12, false, []query{
			{perRule("rategen_decisions_total", `verdict="denied"`) + ` / (` + perRule("rategen_decisions_total", "") + ` > 0)`, "{{rule}}"}}},
		{"Decisions by verdict", "Admitted, denied, denied in shadow mode, not charged because another limit denied, unavailable.", "timeseries", "reqps", 12, true, []query{
			{`sum by (verdict) (rate(rategen_decisions_total{` + ofRule + `}` + window + `))`, "{{verdict}}"}}},
		{"Near the limit by rule", "Share of the decisions by a rule that found 0.8 of the limit used.", "timeseries", "percentunit", 12, false, []query{
			{perRule("rategen_near_limit_total", "") + ` / (` + perRule("rategen_decisions_total", "") + ` > 0)`, "{{rule}}"}}},
		{"Admitted cost by rule", "Events a second that the admitted calls stand for.", "timeseries", "ops", 12, false, []query{
			{perRule("rategen_cost_total", `verdict="admitted"`), "{{rule}}"}}},
		{"Hidden refusals by rule", "Refused calls whose clients were told of something else, such as a failure of the server.", "timeseries", "reqps", 24, false, []query{
			{perRule("rategen_hidden_refusals_total", ""), "{{rule}}"}}},
	}},
	{"The rules now", []panel{
		{"Limit by rule", "The max of each rule, with its override and its adaptive factor.", "timeseries", "none", 12, false, []query{
			{`max by (rule) (rategen_rule_limit{` + ofRule + `})`, "{{rule}}"}}},
		{"Window by rule", "The time that the max refers to.", "timeseries", "s", 12, false, []query{
			{`max by (rule) (rategen_rule_window_seconds{` + ofRule + `})`, "{{rule}}"}}},
		{"Not enforced", "Processes in which a rule is in shadow mode or switched off.", "timeseries", "none", 8, false, []query{
			{`count by (rule) (rategen_rule_enforced{` + ofRule + `} == 0)`, "{{rule}}"}}},
		{"Rules with overrides", "How many rules the overrides in force are for, in the process that has most.", "timeseries", "none", 8, false, []query{
			{`max by (job) (rategen_overrides{` + ofJob + `})`, "{{job}}"}}},
		{"Decisions under overrides by rule", "Decisions by limits that an override of the rule or of the key has changed.", "timeseries", "reqps", 8, false, []query{
			{perRule("rategen_overrides_used_total", ""), "{{rule}}"}}},
		{"Overrides not in force", "How often overrides were rejected, and how many processes cannot read theirs.", "timeseries", "none", 12, false, []query{
			{`sum by (job) (increase(rategen_overrides_rejected_total{` + ofJob + `}` + window + `))`, "{{job}} rejected"},
			{`sum by (job) (rategen_overrides_unread{` + ofJob + `})`, "{{job}} unread"}}},
		{"Adaptive factor by rule", "By how much load scales the max, in the process with the least.", "timeseries", "none", 12, false, []query{
			{`min by (rule) (rategen_adaptive_factor{` + ofRule + `})`, "{{rule}}"}}},
	}},
	{"In flight, waiting and leased", []panel{
		{"Permits in flight by rule", "Permits of concurrency limits that calls hold, over all processes and keys.", "timeseries", "none", 12, false, []query{
			{`sum by (rule) (rategen_permits_in_flight{` + ofRule + `})`, "{{rule}}"}}},
		{"Calls without a permit by rule", "Share of the calls of a concurrency limit that got no permit.", "timeseries", "percentunit", 12, false, []query{
			{perRule("rategen_decisions_total", `verdict="denied"`) + ` / (` + perRule("rategen_decisions_total", "") + ` > 0) and on (rule) rategen_rule_info{` + ofRule + `,algorithm="concurrency"}`, "{{rule}}"}}},
		{"Waiting calls by rule", "Calls that wait for their turn, over all processes.", "timeseries", "none", 8, false, []query{
			{`sum by (rule) (rategen_waiting{` + ofRule + `})`, "{{rule}}"}}},
		{"Time waited by rule, mean", "Of calls that have waited, whether they went on or not.", "timeseries", "s", 8, false, []query{
			{perRule("rategen_wait_time_seconds_total", "") + ` / (` + perRule("rategen_waits_total", "") + ` > 0)`, "{{rule}}"}}},
		{"Waited in vain by rule", "Share of the calls that have waited which did not go on: they were denied, or their callers left.", "timeseries", "percentunit", 8, false, []query{
			{perRule("rategen_waits_total", `admitted="false"`) + ` / (` + perRule("rategen_waits_total", "") + ` > 0)`, "{{rule}}"}}},
		{"Refused by peers, by rule", "Calls that went out and that their peer has refused.", "timeseries", "reqps", 8, false, []query{
			{perRule("rategen_peer_refusals_total", ""), "{{rule}}"}}},
		{"Held back by rule", "For how long calls are still held back, as peers have asked: the longest of all processes and keys.", "timeseries", "s", 8, false, []query{
			{`max by (rule) (rategen_held_seconds{` + ofRule + `})`, "{{rule}}"}}},
		{"Leased units by rule", "Units that processes have charged in advance, and that no call has used yet.", "timeseries", "none", 8, false, []query{
			{`sum by (rule) (rategen_lease_units{` + ofRule + `})`, "{{rule}}"}}},
	}},
	{"Redis", []panel{
		{"Duration by source, median and 99 %", "Of decisions that waited for the store: it decided, or this process or the failure policy did after it gave no answer.", "timeseries", "s", 12, false, []query{
			{`histogram_quantile(0.5, sum by (le, source) (rate(rategen_decision_duration_seconds_bucket{` + ofJob + `}` + window + `)))`, "{{source}} median"},
			{`histogram_quantile(0.99, sum by (le, source) (rate(rategen_decision_duration_seconds_bucket{` + ofJob + `}` + window + `)))`, "{{source}} 99 %"}}},
		{"Failures by class", "Limits that Redis did not decide.", "timeseries", "reqps", 12, true, []query{
			{`sum by (class) (rate(rategen_failures_total{` + ofRule + `}` + window + `))`, "{{class}}"}}},
		{"Open breakers by node", "Processes whose circuit breaker for a node is open.", "timeseries", "none", 8, false, []query{
			{`sum by (node) (rategen_breaker_open{` + ofJob + `})`, "{{node}}"}}},
		{"Undecided calls by policy", "What became of limits that Redis did not decide.", "timeseries", "reqps", 8, true, []query{
			{`sum by (policy) (rate(rategen_failures_total{` + ofRule + `}` + window + `))`, "{{policy}}"}}},
		{"Memory", "Of Redis, where the store has a memory watch.", "timeseries", "bytes", 8, false, []query{
			{`max by (job) (rategen_redis_memory_used_bytes{` + ofJob + `})`, "{{job}} used"},
			{`max by (job) (rategen_redis_memory_max_bytes{` + ofJob + `})`, "{{job}} max"}}},
		{"Decisions by source", "Who decided: Redis, this process from memory, or the failure policy.", "timeseries", "reqps", 12, true, []query{
			{`sum by (source) (rate(rategen_decisions_total{` + ofRule + `}` + window + `))`, "{{source}}"}}},
		{"Contained panics", "Panics in observers, sources and other functions that the limiter was given.", "timeseries", "none", 12, false, []query{
			{`sum by (in) (increase(rategen_panics_total{` + ofJob + `}` + window + `))`, "{{in}}"}}},
	}},
}
