package documents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

// A program is one scenario of limiters, in a bubble of testing/synctest. A step of it is one of
//
//	rule NAME FIELD=VALUE …       declares a rule, or a variant of one with like=NAME
//	limiter NAME OPTION=VALUE …   makes a limiter on the store; without one there is one named l
//	in NAME: STEP                 has another limiter do a step
//	take LIMITS, peek LIMITS, each LIMITS, usage LIMITS, take LIMITS within TIME
//	flow N TIME LIMITS            takes limits so often, each time after a time, and counts the answers
//	go NAME: take LIMITS          begins a call; leave NAME ends its context; end NAME waits for its answer,
//	                              end NAME now, end NAME soon: for no more than a second
//	settle CALL COST …, later CALL COST …, refund CALL
//	hold LIMIT TIME, holdoff LIMIT TIME, release LIMIT, reset LIMIT
//	meter NAME CALL USED …, charge NAME COST …, held NAME, close NAME COST …
//	used NAME COST …              charges a meter until it refuses, and tells how often it did not
//	override RULE FIELD=VALUE …   also of rule/key, of rule share=PATTERN, and of all; override nothing ends all
//	store fails, store answers, store is late TIME, store is late TIME back, store loses renewals, store loses answers
//	switch on, switch off         of all limits
//	load FACTOR                   is what scalers of rules that are adaptive say from then on
//	register NAME …               registers rules; change NAME FIELD=VALUE … changes one that is in use
//	events KIND, log, findings, permits, leased, rules, enabled; trips to the store
//	advance TIME, close           ends the limiter
//
// A step that begins with 3x is done three times, with the steps behind its semicolons; # in it is the
// number of the time, from 0 on. Limits are RULE/KEY COST FIELD=VALUE … + …. Two words may follow them:
// as NAME names the decision, for a later settle, and show FIELD adds retry, reset or limit to the answer.
// A step that takes time says how much.
type program struct {
	player
	store     *faulty
	limiters  map[string]*process
	rules     map[string]*runtime.Rule
	calls     map[string]*call
	meters    map[string]*runtime.Meter
	options   []string
	overrides bool // are changed
	load      atomic.Uint64
}

// Factor implements [rule.Scaler].
func (p *program) Factor(rule.Load) float64 { return math.Float64frombits(p.load.Load()) }

// A process is a limiter of a program.
type process struct {
	*runtime.Limiter
	board board
	every time.Duration // it looks at the board
	heard Events
	log   limittest.Lines
	read  int // of the log
	on    atomic.Bool
}

// A call is one that has begun, and its decision.
type call struct {
	decision runtime.Decision
	answer   chan string
	cancel   context.CancelFunc
	began    time.Time
}

// A board has the overrides that a program writes.
type board struct {
	mu  sync.Mutex
	now runtime.Overrides
}

func (b *board) Overrides(context.Context) (runtime.Overrides, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, nil
}

// poll is how often limiters look for overrides.
const poll = time.Second

func (p *program) step(text string) string {
	text, times := document.Repeated(text)
	return repeat(times, func(round int) string {
		var all []string
		for one := range strings.SplitSeq(text, "; ") {
			if a := p.one(strings.ReplaceAll(one, "#", strconv.Itoa(round))); a != "" {
				all = append(all, a)
			}
		}
		return strings.Join(all, "; ")
	})
}

// one does a step once.
func (p *program) one(text string) string {
	begin := time.Now()
	a := p.do(p.first(text), text)
	synctest.Wait()
	if took := time.Since(begin); took > 0 && !strings.Contains(text, "advance ") && !strings.Contains(text, "override ") && !strings.Contains(text, "flow ") && !strings.Contains(text, " soon") {
		a += fmt.Sprint(", after ", took)
	}
	return a
}

// first returns the limiter of most steps, or nil for those that need none yet.
func (p *program) first(text string) *process {
	if verb, _, _ := strings.Cut(text, " "); slices.Contains([]string{"rule", "change", "load", "limiter", "store", "in", "advance"}, verb) {
		return nil
	}
	return p.process("l")
}

// process returns a limiter, which it makes if the program has not.
func (p *program) process(name string) *process {
	if l := p.limiters[name]; l != nil {
		return l
	}
	return p.open(name, nil)
}

func (p *program) do(l *process, text string) string {
	ctx := context.Background()
	verb, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	switch verb {
	case "rule":
		p.declare(words)
	case "change":
		p.set(p.rules[words[0]], words[1:])
	case "load":
		factor, err := strconv.ParseFloat(words[0], 64)
		if err != nil {
			p.Fatal(err)
		}
		p.load.Store(math.Float64bits(factor))
	case "limiter":
		p.open(words[0], words[1:])
	case "in":
		name, step, _ := strings.Cut(rest, ": ")
		return p.do(p.process(name), step)
	case "take":
		return p.take(ctx, l, rest)
	case "go":
		return p.begin(l, rest)
	case "flow":
		return p.flow(ctx, l, words)
	case "end":
		c := p.calls[words[0]]
		if len(words) > 1 {
			time.Sleep(map[string]time.Duration{"soon": time.Second}[words[1]])
			synctest.Wait()
			if len(c.answer) == 0 {
				return "waits"
			}
			answer, _, _ := strings.Cut(<-c.answer, " after ")
			if c.decision.Allowed {
				return "goes on"
			}
			return answer
		}
		select {
		case answer := <-c.answer:
			return answer
		case <-time.After(time.Hour):
			return "it waits for an hour"
		}
	case "leave":
		p.calls[words[0]].cancel()
	case "peek", "each", "usage":
		return p.look(ctx, l, verb, rest)
	case "settle", "refund", "later":
		return p.settle(ctx, l, verb, words)
	case "hold":
		return wordsOf(l.Hold(ctx, p.limit(words[0]), p.duration(words[1])))
	case "holdoff":
		gone, cancel := context.WithCancel(ctx)
		cancel()
		wrapper.HoldOff(gone, l.Limiter, p.limit(words[0]), p.duration(words[1]))
	case "release":
		return wordsOf(l.Release(ctx, p.limit(rest)))
	case "reset":
		return wordsOf(l.Reset(ctx, p.limit(rest)))
	case "meter":
		p.meters[words[0]] = l.Meter(ctx, p.call(words[1]).decision, p.numbers(words[2:])...)
	case "charge":
		return wordsOf(p.meters[words[0]].Charge(p.numbers(words[1:])...))
	case "used":
		for n := 0; ; n++ {
			if err := p.meters[words[0]].Charge(p.numbers(words[1:])...); err != nil {
				return fmt.Sprintf("%d, then %s", n, wordsOf(err))
			}
		}
	case "held":
		return fmt.Sprint(p.meters[words[0]].Advance(0))
	case "close":
		if len(words) == 0 {
			return wordsOf(l.Close())
		}
		p.meters[words[0]].Close(p.numbers(words[1:])...)
	case "override":
		p.override(l, words)
	case "store":
		p.store.begin(p, words)
	case "register":
		for _, name := range words {
			l.Register(p.rules[name])
		}
	case "switch":
		l.on.Store(words[0] == "on")
	case "advance":
		time.Sleep(p.duration(words[0]))
	default:
		return p.tell(l, verb, words)
	}
	return ""
}

// tell tells what is known of a limiter.
func (p *program) tell(l *process, what string, words []string) string {
	var all []string
	switch what {
	case "events":
		return l.heard.Take(words[0])
	case "log":
		text := l.log.String()
		for line := range strings.Lines(text[l.read:]) {
			all = append(all, strings.TrimSpace(line))
		}
		l.read = len(text)
	case "findings":
		for _, f := range l.Findings() {
			all = append(all, strings.TrimSpace(f.Code+" "+f.Rule))
			if f.Text == "" || f.Help == "" || f.Since.IsZero() || !strings.Contains(l.log.String(), "code="+f.Code+" ") {
				all = append(all, fmt.Sprintf("INCOMPLETE %+v", f))
			}
		}
	case "permits":
		for name, n := range bridge.LimiterOf(l.Limiter).Permits() {
			all = append(all, fmt.Sprint(n, " of ", name))
		}
		slices.Sort(all)
	case "trips":
		all = append(all, fmt.Sprint(p.store.trips.Swap(0)))
	case "leased":
		for name, n := range bridge.LimiterOf(l.Limiter).Leased() {
			all = append(all, fmt.Sprint(n, " of ", name))
		}
	case "rules":
		for _, s := range l.Rules() {
			text := fmt.Sprintf("%s max %d in %v", s.Rule.Name, s.Max, s.Window)
			for _, o := range []struct {
				is   bool
				text string
			}{{!s.Enabled, "off"}, {s.Mode != 0, s.Mode.String()}, {s.Overridden, "overridden"}, {s.Keys > 0, fmt.Sprint(s.Keys, " keys")}, {s.Called, "called"}} {
				if o.is {
					text += " " + o.text
				}
			}
			all = append(all, text)
		}
	case "enabled":
		all = append(all, fmt.Sprint(l.Enabled()))
	default:
		p.Fatalf("no step is %q", what)
	}
	return cmp.Or(strings.Join(all, " | "), "none")
}

// declare declares a rule. Its keys start with its name, if nothing else is said.
func (p *program) declare(words []string) {
	r := &runtime.Rule{Name: words[0], Window: time.Hour, Max: 10}
	p.set(r, words[1:])
	p.rules[words[0]] = r
}

// set sets fields of a rule.
func (p *program) set(r *runtime.Rule, words []string) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "like":
			own := r.Name
			*r = *p.rules[value]
			r.Name = own
		case "adaptive":
			r.Adaptive = p
		default:
			if is, err := document.Set(r, name, value); err != nil || !is {
				p.Fatalf("rule %s: %v", word, err)
			}
		}
	}
}

func (p *program) limits(text string) (all []runtime.Limit) {
	for _, one := range strings.Split(text, " + ") {
		if one != "nothing" {
			all = append(all, p.limit(one))
		}
	}
	return all
}

// limit returns a limit of a rule and a key, which may be left out.
func (p *program) limit(text string) runtime.Limit {
	words := strings.Fields(text)
	name, id, keyed := strings.Cut(words[0], "/")
	r := p.rules[name]
	if r == nil {
		p.Fatalf("no rule is named %s", name)
	}
	var key *runtime.Key
	if keyed {
		key = runtime.NewKey()
		for part := range strings.SplitSeq(id, ":") {
			if part == "?" {
				key.AddInvalid("#" + name + " is nil")
			} else {
				text, err := url.PathUnescape(part)
				if err != nil {
					p.Fatal(err)
				}
				key.AddString(text)
			}
		}
	}
	limit := r.Limit(key)
	for _, word := range words[1:] {
		field, value, is := strings.Cut(word, "=")
		switch {
		case !is:
			limit = limit.WithCost(p.number(field))
		case field == "max":
			limit = limit.WithMax(p.number(value))
		case field == "zone":
			zone, anchor, own := strings.Cut(value, ":")
			if !own {
				anchor = strconv.Itoa(r.Anchor)
			}
			limit = limit.WithPeriod(zone, p.number(anchor))
		case field == "share":
			tenant, weight, _ := strings.Cut(value, ":")
			limit = limit.WithShare(runtime.NewKey().AddString(tenant), p.number(weight))
		default:
			p.Fatalf("no limit has a %s", field)
		}
	}
	return limit
}

// take takes limits, and keeps the decision.
func (p *program) take(ctx context.Context, l *process, text string) string {
	text, show, _ := strings.Cut(text, " show ")
	text, name, _ := strings.Cut(text, " as ")
	text, within, bound := strings.Cut(text, " within ")
	if bound {
		d := p.duration(within)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		if d < 0 {
			cancel()
		}
		defer cancel()
	}
	d, err := l.Take(ctx, p.limits(text)...)
	if c := p.calls[name]; c != nil && c.answer != nil {
		c.decision = d
	} else {
		p.calls[name] = &call{decision: d}
	}
	return told(d, err, strings.Fields(show))
}

// flow takes limits again and again, and counts who decided.
func (p *program) flow(ctx context.Context, l *process, words []string) string {
	count := map[string]int{}
	for range p.number(words[0]) {
		d, err := l.Take(ctx, p.limits(strings.Join(words[2:], " "))...)
		text := "by " + d.Source.String()
		if err != nil {
			text = strings.TrimSpace(wordsOf(err))
		}
		count[text]++
		time.Sleep(p.duration(words[1]))
	}
	var all []string
	for _, text := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprint(count[text], " ", text))
	}
	return strings.Join(all, ", ")
}

// begin begins a call that may wait.
func (p *program) begin(l *process, text string) string {
	name, step, _ := strings.Cut(text, ": ")
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{answer: make(chan string, 1), cancel: cancel, began: time.Now()}
	p.calls[name] = c
	go func() {
		var answer string
		if charge, is := strings.CutPrefix(step, "charge "); is {
			words := strings.Fields(charge)
			answer = wordsOf(p.meters[words[0]].Charge(p.numbers(words[1:])...))
		} else {
			d, err := l.Take(ctx, p.limits(strings.TrimPrefix(step, "take "))...)
			c.decision, answer = d, told(d, err, nil)
		}
		c.answer <- answer + func() string {
			if took := time.Since(c.began); took > 0 {
				return fmt.Sprint(" after ", took)
			}
			return ""
		}()
	}()
	synctest.Wait()
	select {
	case answer := <-c.answer:
		return answer
	default:
		return "waits"
	}
}

// look looks at limits, or takes each by itself.
func (p *program) look(ctx context.Context, l *process, verb, text string) string {
	text, show, _ := strings.Cut(text, " show ")
	text, name, named := strings.Cut(text, " as ")
	limits := p.limits(text)
	var all []string
	switch verb {
	case "peek":
		d, err := l.Peek(ctx, limits...)
		if err == nil && !d.Allowed {
			return told(d, &runtime.LimitedError{Rule: d.Rule, RetryAfter: d.RetryAfter}, strings.Fields(show))
		}
		return told(d, err, strings.Fields(show))
	case "each":
		for i, o := range l.TakeEach(ctx, limits...) {
			if named {
				p.calls[name+strconv.Itoa(i)] = &call{decision: o.Decision}
			}
			all = append(all, told(o.Decision, o.Err, strings.Fields(show)))
		}
	case "usage":
		usages, err := l.Usage(ctx, limits...)
		if err != nil {
			return wordsOf(err)
		}
		for _, u := range usages {
			text := fmt.Sprintf("%s %d of %d left", u.Rule, u.Remaining, u.Limit)
			if u.Blocked {
				text += " blocked"
			} else if u.RetryAfter == runtime.Never {
				text += " for ever"
			}
			if u.Mode != 0 {
				text += " " + u.Mode.String()
			}
			for _, past := range u.Past {
				text += fmt.Sprintf(", %d since %s", past.Used, past.Start.Format(time.DateOnly))
			}
			all = append(all, text)
		}
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

func (p *program) settle(ctx context.Context, l *process, verb string, words []string) string {
	d := p.call(words[0]).decision
	switch verb {
	case "refund":
		return wordsOf(l.Refund(ctx, d))
	case "later":
		l.SettleLater(ctx, d, p.numbers(words[1:])...)
		return ""
	}
	return wordsOf(l.Settle(ctx, d, p.numbers(words[1:])...))
}

// override changes the overrides, which are in force when it returns.
func (p *program) override(l *process, words []string) {
	rules := map[string]rule.Override{}
	o := runtime.Overrides{Rules: rules}
	for name, before := range l.board.now.Rules {
		rules[name] = before
	}
	name, key, keyed := strings.Cut(words[0], "/")
	var of rule.KeyOverride
	var share string
	for _, word := range words[1:] {
		field, value, _ := strings.Cut(word, "=")
		var r rule.Rule
		switch field {
		case "max":
			of.Max = new(p.number(value))
		case "burst":
			of.Burst = new(p.number(value))
		case "weight":
			of.Weight = new(p.number(value))
		case "share":
			share = value
		case "enabled":
			of.Enabled = new(value == "true")
		case "mode", "window":
			if _, err := document.Set(&r, field, value); err != nil {
				p.Fatal(err)
			}
			of.Window = nil
			if field == "window" {
				of.Window = &r.Window
			} else {
				of.Mode = &r.Mode
			}
		}
	}
	switch {
	case name == "nothing":
		clear(rules)
	case name == "all":
		o.Enabled = of.Enabled
	case keyed:
		whole := rules[name]
		whole.Keys = with(whole.Keys, key, of)
		rules[name] = whole
	case share != "":
		whole := rules[name]
		whole.Shares = with(whole.Shares, share, of)
		rules[name] = whole
	default:
		rules[name] = rule.Override{Max: of.Max, Burst: of.Burst, Window: of.Window, Mode: of.Mode, Enabled: of.Enabled, Keys: rules[name].Keys, Shares: rules[name].Shares}
	}
	l.board.mu.Lock()
	l.board.now = o
	l.board.mu.Unlock()
	time.Sleep(l.every)
	synctest.Wait()
}

// with returns patterns and one more: a limiter may be reading those before.
func with(before map[string]rule.KeyOverride, pattern string, of rule.KeyOverride) map[string]rule.KeyOverride {
	all := maps.Clone(before)
	if all == nil {
		all = make(map[string]rule.KeyOverride)
	}
	all[pattern] = of
	return all
}

func (p *program) call(name string) *call {
	c := p.calls[name]
	if c == nil {
		p.Fatalf("no call is named %s", name)
	}
	return c
}

// A player reads the words of steps.
type player struct{ *testing.T }

func (p player) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return n
}

func (p player) numbers(words []string) (all []int64) {
	for _, word := range words {
		all = append(all, p.number(word))
	}
	return all
}

func (p player) duration(text string) time.Duration {
	d, err := document.Duration(text)
	if err != nil {
		p.Fatal(err)
	}
	return d
}

// repeat does a step so often, and returns the answers that differ from the one before.
func repeat(times int, do func(time int) string) string {
	var answers []string
	for i := range times {
		if a := do(i); len(answers) == 0 || a != answers[len(answers)-1] {
			answers = append(answers, a)
		}
	}
	return strings.Join(answers, " | ")
}

// told returns what is told of a decision.
func told(d runtime.Decision, err error, show []string) (text string) {
	var limited *runtime.LimitedError
	switch {
	case err == nil && d.Rule == "":
		text = "admitted"
	case err == nil:
		text = fmt.Sprint(d.Remaining, " left")
	case !errors.As(err, &limited):
		return wordsOf(err)
	case d.RetryAfter == runtime.Never:
		text = "never admitted by " + d.Rule
	case d.Blocked:
		text = "blocked by " + d.Rule
	default:
		text = fmt.Sprint("refused by ", d.Rule, " with ", d.Remaining, " left")
	}
	if slices.Contains(show, "verdict") && err == nil {
		return "passes"
	}
	if d.Allowed != (err == nil) || limited != nil && (limited.Rule != d.Rule || limited.RetryAfter != d.RetryAfter) || err != nil && d.RetryAfter <= 0 {
		text += fmt.Sprintf(" CONTRADICTION %+v", d)
	}
	if d.Source > rule.SourceStore {
		text += ", " + d.Source.String()
	}
	for _, field := range show {
		switch field {
		case "retry":
			text += fmt.Sprint(", retry ", d.RetryAfter)
		case "reset":
			text += fmt.Sprint(", reset ", d.ResetAfter)
		case "limit":
			text += fmt.Sprint(" of ", d.Limit)
		case "text":
			if err != nil {
				text += fmt.Sprintf(", %q", err)
			}
		}
	}
	return text
}

// wordsOf returns an error in words.
func wordsOf(err error) string {
	var limited *runtime.LimitedError
	for _, known := range []struct {
		err  error
		text string
	}{
		{runtime.ErrClosed, "closed"}, {runtime.ErrUnavailable, "unavailable"}, {context.Canceled, "the caller has left"}, {context.DeadlineExceeded, "too late"},
		{runtime.ErrSettled, "settled before"}, {runtime.ErrOtherLimiter, "of another limiter"},
	} {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	if err == nil {
		return ""
	}
	if errors.As(err, &limited) {
		return "refused by " + limited.Rule
	}
	if errors.Is(err, runtime.ErrInvalidLimit) || errors.Is(err, runtime.ErrInvalidKey) {
		return err.Error()
	}
	return "error: " + err.Error()
}
