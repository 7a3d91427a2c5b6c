package directive

import (
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/spec"
)

// A Topic is what a sentence of an explanation is about.
type Topic string

// The topics of an explanation, in its order.
const (
	TopicLimit   Topic = "limit"   // what is admitted
	TopicKey     Topic = "key"     // whose calls are counted together
	TopicRefusal Topic = "refused" // what is refused, and what its caller gets
	TopicEnd     Topic = "end"     // what changes when the call returns
	TopicRedis   Topic = "redis"   // what Redis holds
	TopicFailure Topic = "failure" // what happens when Redis gives no answer
)

// Topics are all topics in the order of an explanation.
var Topics = []Topic{TopicLimit, TopicKey, TopicRefusal, TopicEnd, TopicRedis, TopicFailure}

// explanations are the sentences of a row of [Options] about a directive, by topic. A function
// returns "" where there is nothing to say.
type explanations map[Topic]func(*Settings) string

// ofExpr says something of an option that is an expression: its text stands for %s. A literal 1 is not told.
func ofExpr(option, sentence string) func(*Settings) string {
	return func(s *Settings) string {
		if v := s.Expr(option); v != nil && v.Text != "1" {
			return strings.Replace(sentence, "%s", v.Text, 1)
		}
		return ""
	}
}

// ofList says something of an option that is a list: that stands for %s.
func ofList(list func(*Settings) []string, sentence string) func(*Settings) string {
	return func(s *Settings) string {
		if all := list(s); len(all) > 0 {
			return strings.Replace(sentence, "%s", List(all, "and"), 1)
		}
		return ""
	}
}

// methodsOf returns the methods that an option names.
func methodsOf(option string) func(*Settings) []string {
	return func(s *Settings) []string { return texts(s.Methods(option)) }
}

// Explain returns what the options of a directive mean, in sentences, in the order of the
// table. Numbers should be resolved: max and cost are then literals where they are
// constant.
func (s *Settings) Explain(about Topic) []string {
	var all []string
	for i := range Options {
		o := &Options[i]
		explain := o.explain[about]
		if explain == nil || !o.appliesTo(s.Algorithm()) {
			continue
		}
		if text := explain(s); text != "" {
			all = append(all, text)
		}
	}
	for _, text := range []string{s.explainConstants(), s.explainDefaults()} {
		if about == TopicLimit && text != "" {
			all = append(all, text)
		}
	}
	return all
}

func algorithmBrief(s *Settings) string {
	if a := s.Algorithm(); a != algorithms[0] && !s.Plain().Is(algorithm.Lends) {
		return a
	}
	return ""
}

func modeBrief(s *Settings) string {
	if s.Refuses() {
		return ""
	}
	return s.Mode()
}

func explainKey(s *Settings) string {
	key := texts(s.Key())
	switch len(key) {
	case 0:
		return "All callers share one budget."
	case 1:
		return "Calls are counted apart for each " + key[0] + "."
	}
	return "Calls are counted apart for each combination of " + List(key, "and") + "."
}

func explainMax(s *Settings) string {
	limit := s.say(s.Row().Words.Max)
	if _, known := s.max(); !known {
		limit += " The max is evaluated for each call."
	}
	return limit
}

// say puts what a limit says into words of a row.
func (s *Settings) say(words string) string {
	most, known := s.max()
	twice := "twice that many"
	if n, err := strconv.ParseInt(most, 10, 64); known && err == nil {
		twice = strconv.FormatInt(2*n, 10)
	}
	return strings.NewReplacer("{calls}", callCount(most), "{per}", s.Per(), "{any}", exactWindow(s), "{twice}", twice,
		"{window}", spec.DurationText(s.Window()), "{lease}", spec.DurationText(s.Lease()),
		"{period}", explainPeriod(s), "{keep}", keepSays(s)).Replace(words)
}

// exactWindow returns the time in which a log or a counter admits no more than its max.
// Rounding takes a time slice of the window: see the page on algorithms.
func exactWindow(s *Settings) string {
	rounded := get[time.Duration](s, "resolution")
	if rounded >= s.Window() {
		return "each time slice of " + spec.DurationText(s.Window())
	}
	return "any " + spec.DurationText(s.Window()-rounded)
}

func explainAlgorithm(s *Settings) string {
	if get[time.Duration](s, "resolution") != 0 {
		return "" // of which its own row tells
	}
	return s.say(s.Row().Words.Exact)
}

func explainResolution(s *Settings) string {
	r := get[time.Duration](s, "resolution")
	if r == 0 {
		return ""
	}
	return "Times fall to the start of their time slice of " + spec.DurationText(r) + ": calls leave the window together, up to " + spec.DurationText(r) + " early."
}

func explainBuckets(s *Settings) string {
	b, n := get[buckets](s, "buckets"), 60
	if b.adaptive {
		n = 16
	} else if b.fine > 0 {
		n = b.coarse * b.fine
	} else if b.coarse > 0 {
		n = b.coarse
	}
	return "Calls are counted in buckets: one may count for up to " + spec.DurationText((s.Window() / time.Duration(n)).Round(time.Microsecond)) + " longer than the window."
}

func explainBurst(s *Settings) string {
	most, _ := s.max()
	burst := most
	if s.Burst() > 0 {
		burst = strconv.FormatInt(s.Burst(), 10)
	}
	if !s.Row().Is(algorithm.Queues) {
		return "After a pause a burst of up to " + callCount(burst) + " passes at once."
	}
	if s.Burst() > 0 {
		return "At most " + callCount(burst) + " may be in line."
	}
	return ""
}

func explainShare(s *Settings) string {
	share := s.ShareText()
	if share == "" {
		return ""
	}
	weight, last := "evenly", "quarter of the burst is"
	if v := s.Expr("weight"); v != nil && v.Text != "1" {
		weight = "by " + v.Text
	}
	if n := s.Headroom(); n > 0 {
		last = callCount(strconv.FormatInt(n, 10)) + " of the burst are"
	}
	return "Calls of a key share it, " + weight + " among the values of " + share + ": who wants less than its share gets it all, and others divide the rest. The last " + last + " for those that have used less than the heaviest."
}

func explainLease(s *Settings) string {
	if s.Lease() == 0 {
		return ""
	}
	return s.say("A process with many calls on a key charges some of them ahead, for up to {lease}, and admits these by itself." + s.Row().Words.Lease)
}

func explainReplace(s *Settings) string {
	switch s.Replaces() {
	case "":
		return ""
	case "all":
		return "It takes the place of the interface's limits."
	}
	return "It takes the place of the interface's limit " + s.Replaces() + "."
}

// max returns the max and whether it is a number.
func (s *Settings) max() (text string, known bool) {
	text = s.MaxText()
	_, err := strconv.ParseInt(text, 10, 64)
	return text, err == nil
}

// callCount writes a number of calls.
func callCount(n string) string {
	if n == "1" {
		return "1 call"
	}
	return n + " calls"
}

// List writes words as in "a, b and c".
func List(words []string, and string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}
