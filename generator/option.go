package generator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
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
	// parse takes the value into the rule and returns what is wrong with it.
	parse func(r *rule, v value) error
}

type place int

const (
	anywhere place = iota
	onInterface
)

var optionTable = []optionSpec{
	{Option{"key", "PART,PART...", "whose calls are counted together: Go expressions in which #id is the parameter id and #0 the first; without it all callers share one budget"}, anywhere,
		func(r *rule, v value) error { return r.parseKey(v) }},
	{Option{"window", "DURATION", "the time that max refers to, 1ms to 366d; 60s without it"}, anywhere,
		func(r *rule, v value) (err error) { r.window, err = parseWindow(v.text); return err }},
	{Option{"max", "INTEGER", "how many calls are admitted in a window, 1 to 1000000, or a Go integer expression over the parameters; 100 without it"}, anywhere,
		func(r *rule, v value) error { r.max = &v; return nil }},
	{Option{"algorithm", "NAME", "how calls are counted; sliding-log, the default, is exact"}, anywhere,
		func(r *rule, v value) error { return checkAlgorithm(v.text) }},
	{Option{"cost", "INTEGER", "how many events a call counts as, or a Go integer expression such as len(#items); 1 without it"}, anywhere,
		func(r *rule, v value) error { r.cost = &v; return nil }},
	{Option{"when", "CONDITION", "Go boolean expression; while it is false the limit is not applied"}, anywhere,
		func(r *rule, v value) error { r.when = &v; return nil }},
	{Option{"prefix", "TEXT", "start of the Redis key; rate_limit:<package>.<Interface>.<Method>: without it"}, anywhere,
		func(r *rule, v value) error { r.prefix = v.text; return checkText(v.text, 120) }},
	{Option{"name", "TEXT", "the rule's name in errors, logs and metrics; <package>.<Interface>.<Method> without it"}, anywhere,
		func(r *rule, v value) error { r.name = v.text; return checkText(v.text, 120) }},
	{Option{"message", "TEXT", "text of the error of a refused call; \"rate limit exceeded\" without it"}, anywhere,
		func(r *rule, v value) error { r.message = v.text; return checkText(v.text, 1000) }},
	{Option{"fail", "open|closed|local", "what happens to a call when Redis gives no answer: pass, be refused, or be decided by this process alone; the limiter's policy without it"}, anywhere,
		func(r *rule, v value) (err error) { r.fail = v.text; return oneOf(v.text, "open", "closed", "local") }},
	{Option{"except", "METHOD,METHOD...", "methods that a limit of a whole interface leaves out"}, onInterface,
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

// The options of later versions, so that they are not called unknown.
var (
	laterOptions    = []string{"storage", "resolution", "buckets", "burst", "wait", "mode", "adaptive"}
	laterAlgorithms = []string{"sliding-counter", "fixed-window", "token-bucket", "leaky-bucket"}
)

func checkAlgorithm(name string) error {
	if slices.Contains(laterAlgorithms, name) {
		return fmt.Errorf("%q is not available in this version; write algorithm=sliding-log or leave it out", name)
	}
	if name != "sliding-log" {
		return fmt.Errorf("unknown name %q%s: write algorithm=sliding-log", name,
			suggest(name, append([]string{"sliding-log"}, laterAlgorithms...)))
	}
	return nil
}

// parseWindow reads a Go duration; it may also be whole days, as in 7d.
func parseWindow(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		d = time.Duration(n) * day
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration: write one such as 500ms, 10s, 1h30m or 7d", text)
	case d < time.Millisecond || d > 366*day:
		return 0, fmt.Errorf("%s is not between 1ms and 366d", text)
	}
	return d, nil
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
	return fmt.Errorf("%q is none of %s%s", text, strings.Join(choices, ", "), suggest(text, choices))
}
