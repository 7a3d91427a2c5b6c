package generator

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// An Option describes one option of a directive, for the manual.
type Option struct {
	// Name is what stands before the equal sign.
	Name string
	// Value is a placeholder for what stands after it.
	Value string
	// Doc is one sentence on what it does and what holds without it.
	Doc string
}

// An optionSpec is an option with what the generator does about it. Adding an
// option is adding a row to optionTable.
type optionSpec struct {
	Option
	// only says where the option has a meaning; the zero value is everywhere.
	only place
	// algorithms are those that the option belongs to; nil means all.
	algorithms []string
	// parse takes the value into the rule and returns what is wrong with it.
	parse func(r *rule, v value) error
}

type place int

const (
	anywhere place = iota
	onInterface
)

var optionTable = []optionSpec{
	{Option{"key", "PART,PART...", "whose calls are counted together: Go expressions in which #id is the parameter id and #0 the first; without it all callers share one budget"}, anywhere, nil,
		func(r *rule, v value) error { return r.parseKey(v) }},
	{Option{"window", "DURATION", "the time that max refers to, 1ms to 366d; 60s without it"}, anywhere, nil,
		func(r *rule, v value) (err error) { r.window, err = parseWindow(v.text); return err }},
	{Option{"max", "INTEGER", "how many calls are admitted in a window, or a Go integer expression over the parameters: 1 to 1000000 for sliding-log, to 1000000000000 for the other algorithms; 100 without it"}, anywhere, nil,
		func(r *rule, v value) error { r.max = &v; return nil }},
	{Option{"algorithm", "NAME", "how calls are counted: sliding-log, which is exact, sliding-counter, fixed-window, token-bucket or leaky-bucket; sliding-log without it"}, anywhere, nil,
		func(r *rule, v value) error { r.algorithm = v.text; return checkAlgorithm(v.text) }},
	{Option{"storage", "zset|list", "how Redis keeps the log: a sorted set is easier to look at, a list is smaller; zset without it"}, anywhere, []string{slidingLog},
		func(r *rule, v value) error { r.storage = v.text; return oneOf(v.text, "zset", "list") }},
	{Option{"resolution", "DURATION", "events fall to the start of a time slice of this length, and leave the window together; exact without it"}, anywhere, []string{slidingLog},
		func(r *rule, v value) (err error) { r.resolution, err = parseResolution(v.text); return err }},
	{Option{"buckets", "N|NxM|auto", "how the window is divided: N equal buckets, N coarse ones of M fine ones each, or buckets as wide as the traffic allows; 60 without it"}, anywhere, []string{slidingCounter},
		func(r *rule, v value) (err error) { r.buckets, err = parseBuckets(v.text); return err }},
	{Option{"burst", "INTEGER", "how many calls are admitted at once, 1 to 1000000000000, or may wait in line; max without it, or as many as wait lets in"}, anywhere, []string{tokenBucket, leakyBucket},
		func(r *rule, v value) (err error) { r.burst, err = parseBurst(v.text); return err }},
	{Option{"cost", "INTEGER", "how many events a call counts as, or a Go integer expression such as len(#items); 1 without it"}, anywhere, nil,
		func(r *rule, v value) error { r.cost = &v; return nil }},
	{Option{"when", "CONDITION", "Go boolean expression; while it is false the limit is not applied"}, anywhere, nil,
		func(r *rule, v value) error { r.when = &v; return nil }},
	{Option{"prefix", "TEXT", "start of the Redis key; rate_limit:<package>.<Interface>.<Method>: without it"}, anywhere, nil,
		func(r *rule, v value) error { r.prefix = v.text; return checkText(v.text, 120) }},
	{Option{"name", "TEXT", "the rule's name in errors, logs and metrics; <package>.<Interface>.<Method> without it"}, anywhere, nil,
		func(r *rule, v value) error { r.name = v.text; return checkText(v.text, 120) }},
	{Option{"message", "TEXT", "text of the error of a refused call; \"rate limit exceeded\" without it"}, anywhere, nil,
		func(r *rule, v value) error { r.message = v.text; return checkText(v.text, 1000) }},
	{Option{"fail", "open|closed|local", "what happens to a call when Redis gives no answer: pass, be refused, or be decided by this process alone; the limiter's policy without it"}, anywhere, nil,
		func(r *rule, v value) (err error) { r.fail = v.text; return oneOf(v.text, "open", "closed", "local") }},
	{Option{"wait", "DURATION", "how long a call may wait for its turn instead of being refused at once, the context's deadline permitting; leaky-bucket then spaces calls evenly; 0s without it"}, anywhere, nil,
		func(r *rule, v value) (err error) { r.wait, err = parseWait(v.text); return err }},
	{Option{"mode", "enforce|shadow", "shadow counts calls and refuses none, to try a limit out; enforce without it"}, anywhere, nil,
		func(r *rule, v value) error { r.mode = v.text; return oneOf(v.text, "enforce", "shadow") }},
	{Option{"adaptive", "SIGNAL,SIGNAL...", "the max follows how busy the process is, by cpu, memory and latency, more than max while idle and less under load; fixed without it"}, anywhere, nil,
		func(r *rule, v value) error { return r.parseAdaptive(v) }},
	{Option{"except", "METHOD,METHOD...", "methods that a limit of a whole interface leaves out"}, onInterface, nil,
		func(r *rule, v value) error { return r.parseExcept(v) }},
}

// Options returns the options of a directive in the order of the manual.
func Options() []Option {
	options := make([]Option, len(optionTable))
	for i, spec := range optionTable {
		options[i] = spec.Option
	}
	return options
}

func optionNames() []string {
	names := make([]string, len(optionTable))
	for i, spec := range optionTable {
		names[i] = spec.Name
	}
	return names
}

// checkText accepts printable text of 1 to most bytes.
func checkText(text string, most int) error {
	switch {
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("the text is empty; leave the option out for its default")
	case len(text) > most:
		return fmt.Errorf("the text has %d bytes, the most is %d", len(text), most)
	}
	for _, c := range text {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("the text holds the unprintable character %q", c)
		}
	}
	return nil
}

func oneOf(text string, choices ...string) error {
	if slices.Contains(choices, text) {
		return nil
	}
	return &choiceError{fmt.Sprintf("%q is none of %s%s", text, strings.Join(choices, ", "), suggest(text, choices)), choices}
}

// A choiceError is a value that is none of those to choose from.
type choiceError struct {
	text    string
	choices []string
}

func (e *choiceError) Error() string { return e.text }
