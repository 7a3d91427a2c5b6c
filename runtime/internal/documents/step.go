package documents

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rawstore"
)

// A trial is one scenario over one rule, in one variant. A step of it is one of
//
//	rule NAME=VALUE …         changes the rule
//	take CHARGES, CHARGES …   takes calls in one batch, with any number of charges each
//	peek CHARGES              looks at a call
//	settle NAME COST, refund NAME, refund all NAME, renew NAME, forget NAME
//	hold KEY TIME, release KEY, reset KEY + KEY …
//	past KEY                  is what was used of former periods
//	use KEY COST              takes a call and settles it at its cost
//	cycle KEY COST TIME       takes a call that gives all back after a time
//	number NAME N             adds to the number by which a store knows a charge
//	call LIMITER KEY COST N   has a limiter take a call, and settle it at N
//	heard LIMITER             closes it, and tells what it has heard of shares
//	advance TIME …            by the sum of these
//	lives KEY                 is for how long the store keeps a key
//
// Charges are KEY COST NAME=VALUE … + KEY …, of cost 1 without it. Behind them stand
// as NAME, by which the last one is known then, and all with all, and show with what of the answer is to be told:
// retry, reset, more, delay, until (the time of the reset), at (from now on), number (by
// which a store knows the charge), later (whether that is above the number of a), kept (that the key lives until the
// reset and for a second more at most). A TIME is a duration, or that of the last answer, or of the rule, by
// which it is named, and may be divided, as in window/7. What is 3x is done three times, with the steps behind its
// semicolons. What begins with quietly tells no more than what is wrong. What begins
// with until ANSWER: is done until that is the answer, where time passes by itself.
type trial struct {
	player
	Subject
	rule    runtime.Rule
	limiter *runtime.Limiter
	mu      sync.Mutex // held to note what was told
	named   map[string]rawstore.Charge
	all     map[string][]rawstore.Charge
	last    rawstore.Charge
	hears   map[string]*hearer
}

// A hearer is a limiter that hears of shares, unless it is deaf, and what it has heard.
type hearer struct {
	*runtime.Limiter
	heard []string
}

// play plays a scenario.
func play(t *testing.T, start func(*testing.T) Subject, s *document.Scenario, r *runtime.Rule, variant []string) {
	replace, world := strings.NewReplacer(variant...), document.World{r.Name}
	for i := 0; i < len(variant); i += 2 {
		world = append(world, document.ValueName(variant[i], variant[i+1]))
	}
	name := strings.Join(world[1:], " ")
	for group, names := range groups {
		if slices.Contains(names, r.Name) {
			world = append(world, group)
		}
	}
	play := func(t *testing.T) {
		subject := start(t)
		if _, exact := s.Arg("exact"); exact && !subject.Exact {
			t.Skip("needs a clock that stands still")
		}
		p := newTrial(t, subject, r)
		for _, l := range s.Lines {
			if l.Step != "" {
				l.Answer(t, world, p.step(replace.Replace(l.Step)))
			}
		}
	}
	if len(variant) == 0 {
		play(t)
		return
	}
	t.Run(name, play)
}

func newTrial(t *testing.T, subject Subject, r *runtime.Rule) *trial {
	p := &trial{player: player{t}, Subject: subject, rule: *r, named: map[string]rawstore.Charge{}, all: map[string][]rawstore.Charge{}, hears: map[string]*hearer{}}
	p.limiter = runtime.New(p.Store, runtime.WithFailurePolicy(runtime.FailClosed), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	if isCalendar(r) && !subject.Exact { // years that do not end soon
		p.rule.Anchor = 100*int(time.UnixMicro(subject.Now()).AddDate(0, 6, 0).Month()) + 1
	}
	return p
}

// wrongs are words of answers that are told also of steps that are done quietly.
var wrongs = regexp.MustCompile("error|CONTRADICTION|lives")

// step does what a step says, and returns the answer.
func (t *trial) step(text string) string {
	text, times := document.Repeated(text)
	if until, rest, is := strings.Cut(text, ": "); is && strings.HasPrefix(until, "until ") {
		until = until[len("until "):]
		for begin := time.Now(); !t.Exact && t.do(rest) != until && time.Since(begin) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		text = rest
	}
	text, quiet := strings.CutPrefix(text, "quietly ")
	steps := strings.Split(text, "; ")
	if strings.Contains(steps[0], ": ") { // it is about all that follows
		steps = []string{text}
	}
	return repeat(times, func(int) string {
		var all []string
		for _, one := range steps {
			if a := t.do(one); a != "" && (!quiet || wrongs.MatchString(a)) {
				all = append(all, a)
			}
		}
		return strings.Join(all, "; ")
	})
}

func (t *trial) do(text string) string {
	verb, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	store, ctx := rawstore.Wrap(t.Store), t.Context()
	switch verb {
	case "rule":
		t.set(&t.rule, words)
	case "take", "peek":
		return t.ask(verb, rest)
	case "settle", "refund":
		if words[0] == "all" {
			return t.wrong(store.Settle(ctx, t.all[words[1]]))
		}
		c := t.charged(words[0])
		c.Settled = 0
		if verb == "settle" {
			c.Settled = t.number(words[1])
			words = words[1:]
		}
		t.change(&c, words[1:])
		return t.wrong(store.Settle(ctx, []rawstore.Charge{c}))
	case "renew":
		return t.renew(store, words)
	case "hold", "release":
		c := t.charge(words[0])
		c.Wait = 0
		if verb == "hold" {
			c.Wait = t.duration(words[1])
		}
		return t.wrong(store.Hold(ctx, []rawstore.Charge{c}))
	case "reset":
		var charges []rawstore.Charge
		for _, name := range strings.Split(rest, " + ") {
			charges = append(charges, t.charge(name))
		}
		return t.wrong(store.Reset(ctx, charges))
	case "past":
		return t.past(ctx, words[0])
	case "use":
		answer := t.ask("take", rest+" as used")
		c := t.charged("used")
		c.Settled = c.Cost
		return answer + t.wrong(store.Settle(ctx, []rawstore.Charge{c}))
	case "cycle":
		answer := t.ask("take", strings.Join(words[:2], " ")+" as used")
		c := t.charged("used")
		err := store.Settle(ctx, []rawstore.Charge{c})
		t.Advance(t.duration(words[2]))
		return answer + t.wrong(err)
	case "number":
		c := t.charged(words[0])
		c.At += t.number(words[1])
		t.named[words[0]] = c
	case "call":
		return t.call(words)
	case "heard":
		if err := t.hears[words[0]].Close(); err != nil {
			return t.wrong(err)
		}
		return strings.Join(t.hears[words[0]].heard, ", ")
	case "advance":
		var by time.Duration
		for _, word := range words {
			by += t.duration(word)
		}
		t.Advance(by)
	case "lives":
		return t.Lives(t.key(rest)).String()
	default:
		if t.Step == nil {
			t.Fatalf("no step is %q", text)
		}
		return t.Step(text, Steps{t.key, t.step, t.duration})
	}
	return ""
}

// wrong returns the class of an error.
func (t *trial) wrong(err error) string {
	if err == nil {
		return ""
	}
	t.Log(err)
	return "error: " + runtime.ClassOf(err).String()
}

// ask takes calls, or looks at one, and returns what is told of them.
func (t *trial) ask(verb, rest string) string {
	rest, show, _ := strings.Cut(rest, " show ")
	rest, name, _ := strings.Cut(rest, " as ")
	var calls []rawstore.Call
	for _, text := range strings.Split(rest, ", ") {
		var call rawstore.Call
		for _, c := range strings.Split(text, " + ") {
			call.Charges = append(call.Charges, t.charge(c))
		}
		calls = append(calls, call)
	}
	do := rawstore.Store.Take
	if verb == "peek" {
		do = rawstore.Store.Peek
	}
	if err := do(rawstore.Wrap(t.Store), t.Context(), calls); err != nil {
		return t.wrong(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var answers []string
	delete(t.all, name)
	for _, call := range calls {
		if call.Err != nil {
			answers = append(answers, t.wrong(call.Err))
			continue
		}
		var each []string
		for _, c := range call.Charges {
			t.last = c
			t.all[name] = append(t.all[name], c)
			each = append(each, t.told(c, verb == "take", strings.Fields(show)))
		}
		answers = append(answers, strings.Join(each, " + "))
	}
	if name != "" {
		t.named[name] = t.last
	}
	return strings.Join(answers, ", ")
}

// told returns what is told of a charge, and all of a result that contradicts itself.
func (t *trial) told(c rawstore.Charge, take bool, show []string) (text string) {
	r, room := c.Result, strconv.FormatInt(c.Remaining, 10)+" left"
	good := r.RetryAfter == 0
	switch {
	case r.Blocked:
		text = "blocked"
		good = !r.Allowed && r.Remaining == 0 && r.At == 0 && r.RetryAfter > 0 && (r.ResetAfter >= r.RetryAfter || r.ResetAfter >= c.Rule.Block/2)
	case !r.Allowed:
		text = "refused with " + room
		good = r.At == 0 && r.RetryAfter > 0 && r.Delay == 0
	case c.Cost == 0:
		text = room + " for free"
		good = good && r.At == 0 && r.Mark == 0 && r.Delay == 0
	case !take:
		text = room
		good = good && r.At == 0 && r.Delay == 0
	case r.At == 0:
		text = room + " uncharged"
		good = good && r.Delay == 0
	default:
		text = room
		good = good && r.ResetAfter > 0
	}
	for _, field := range show {
		switch field {
		case "retry":
			text += fmt.Sprint(", retry ", r.RetryAfter)
		case "reset":
			text += fmt.Sprint(", reset ", r.ResetAfter)
		case "more":
			text += fmt.Sprint(", more ", r.MoreAfter)
		case "delay":
			text += fmt.Sprint(", turn ", r.Delay)
		case "at":
			text += fmt.Sprint(", at ", time.Duration(r.At-t.Now())*time.Microsecond)
		case "number":
			text += fmt.Sprint(", number of a + ", r.At-t.charged("a").At)
		case "later":
			text += fmt.Sprint(", later: ", r.At-c.Cost >= t.charged("a").At)
		case "kept":
			if lives := t.Lives(string(c.Key)); lives < r.ResetAfter || lives > r.ResetAfter+time.Second {
				text += fmt.Sprint(", lives for ", lives)
			}
		case "until":
			zone, err := time.LoadLocation(c.Rule.Zone)
			if err != nil {
				t.Fatal(err)
			}
			text += strings.TrimSuffix(time.UnixMicro(t.Now()+r.ResetAfter.Microseconds()).In(zone).Format(", until 2006-01-02 15:04:05.999999"), " 00:00:00")
		default:
			t.Fatalf("no answer has a %s", field)
		}
	}
	if !good {
		text += fmt.Sprintf(" CONTRADICTION %+v", r)
	}
	return text
}

// renew renews a charge, and tells whether it is another one now, or none.
func (t *trial) renew(store rawstore.Store, words []string) string {
	name, c := words[0], t.charged(words[0])
	t.change(&c, words[1:])
	calls := []rawstore.Call{{Charges: []rawstore.Charge{c}}}
	if err := store.Renew(t.Context(), calls); err != nil || calls[0].Err != nil {
		return fmt.Sprint("error: ", err, calls[0].Err)
	}
	now := calls[0].Charges[0].At
	if now == 0 {
		return "gone"
	}
	known := t.named[name]
	known.At = now
	t.named[name] = known
	if now > c.At {
		return "charged again"
	}
	if now < c.At {
		return "charged before"
	}
	return ""
}

// past returns what was used of the last periods, the last one first.
func (t *trial) past(ctx context.Context, name string) string {
	usages, err := t.limiter.Usage(ctx, t.limit(name))
	if err != nil || len(usages) != 1 {
		return fmt.Sprint("error: ", err)
	}
	var used []string
	for i, p := range usages[0].Past {
		used = append(used, fmt.Sprintf("%d since %s", p.Used, strings.TrimSuffix(p.Start.Format("2006-01-02 15:04:05.999999"), " 00:00:00")))
		if !p.Start.Before(p.End) || i > 0 && !p.End.Equal(usages[0].Past[i-1].Start) {
			t.Errorf("%v does not end where the next one begins", p)
		}
	}
	return strings.Join(used, ", ")
}

// call has a limiter take a call of a cost, which turns out to cost as much as is said.
func (t *trial) call(words []string) string {
	l := t.hears[words[0]]
	if l == nil {
		l = new(hearer)
		o := observe.Observer{Threshold: func(ev observe.ThresholdEvent) {
			l.heard = append(l.heard, fmt.Sprint(ev.Percent, "% of ", ev.Limit, ": ", ev.Used, " with ", ev.ResetAfter, " left"))
		}}
		if words[0] == "deaf" {
			o.Threshold = nil
		}
		l.Limiter = runtime.New(t.Store, runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithObserver(&o))
		t.hears[words[0]] = l
	}
	d, err := l.Take(t.Context(), t.limit(words[1]).WithCost(t.number(words[2])))
	if err == nil {
		err = l.Settle(t.Context(), d, t.number(words[3]))
	}
	return t.wrong(err)
}

// key returns the key of a name.
func (t *trial) key(name string) string { return string(t.charge(name).Key) }

// limit returns a limit of the rule as it is now: one that a limiter knows does not change.
func (t *trial) limit(name string) runtime.Limit {
	now := t.rule
	now.Prefix = Prefix(t.T)
	if isCalendar(&now) {
		now.Window = 0
	}
	return now.Limit(runtime.NewKey().AddString(name))
}

// charge returns a charge of the trial's rule to a key of this test's own. Keys
// that differ in name lie in different slots of a cluster.
func (t *trial) charge(text string) rawstore.Charge {
	words := strings.Fields(text)
	r := t.rule
	c := rawstore.Charge{Rule: &r, Key: []byte(Prefix(t.T) + words[0]), Max: r.Max, Cost: 1, Wait: r.Wait}
	if isCalendar(&r) {
		r.Window = 0
		c.Key = []byte(bridge.LimiterOf(t.limiter).RedisKey(t.limit(words[0])))
	}
	if isQueue(&r) && r.Burst == 0 {
		r.Burst = r.Max // in line: without it only the wait counts
	}
	if words = words[1:]; len(words) > 0 && !strings.Contains(words[0], "=") {
		c.Cost, words = t.number(words[0]), words[1:]
	}
	t.change(&c, words)
	return c
}

// change changes a charge, or its rule.
func (t *trial) change(c *rawstore.Charge, words []string) {
	r := *c.Rule
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "cost":
			c.Cost = t.number(value)
		case "share":
			tenant, weight, _ := strings.Cut(value, ":")
			c.Tenancy = terms.Tenancy{Tenant: []byte(tenant), Weight: t.number(weight)}
		case "max":
			c.Max = t.number(value)
		case "wait":
			c.Wait = t.duration(value)
		case "mark":
			c.Mark = t.number(value)
		case "at":
			c.At = t.charged(value).At
		case "key":
			c.Key = t.charge(value).Key
		default:
			t.set(&r, []string{word})
		}
	}
	if isCalendar(&r) {
		r.Window = 0
	}
	c.Rule = &r
}

// set sets what a rule of that kind can have.
func (t *trial) set(r *runtime.Rule, words []string) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "period", "anchor", "zone", "keep":
			if !isCalendar(r) {
				continue
			}
		case "slice":
			if r.Resolution > 0 {
				r.Resolution = t.duration(value)
			}
			continue
		}
		if is, err := document.Set(r, name, value); err != nil || !is {
			t.Fatalf("rule %s: %v", word, err)
		}
	}
}

// charged returns a charge by the name that a step gave it.
func (t *trial) charged(name string) rawstore.Charge {
	c, is := t.named[name]
	if !is {
		t.Fatalf("nothing is named %s", name)
	}
	return c
}

func (t *trial) duration(text string) time.Duration {
	text, by, divided := strings.Cut(text, "/")
	if divided {
		return t.duration(text) / time.Duration(t.number(by)) / time.Microsecond * time.Microsecond
	}
	switch text {
	case "window":
		return t.rule.Window
	case "block":
		return t.rule.Block
	case "retry":
		return t.last.RetryAfter
	case "reset":
		return t.last.ResetAfter
	case "more":
		return t.last.MoreAfter
	}
	return t.player.duration(text)
}

// Prefix returns what the keys of a test start with.
func Prefix(t *testing.T) string {
	return "storetest:" + strings.NewReplacer(" ", "-", "/", ":").Replace(t.Name()) + ":"
}
