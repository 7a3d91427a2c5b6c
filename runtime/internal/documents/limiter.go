package documents

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
	"github.com/rategen/rategen/runtime/wrapper"
)

// A program is one scenario of limiters, in a bubble of testing/synctest. A step of it is one of
//
//	rule NAME FIELD=VALUE …       declares a rule, or a variant of one with like=NAME
//	limiter NAME OPTION=VALUE …   makes a limiter on the store, or apart, as in another process; without one there is one named l
//	in NAME: STEP                 has another limiter do a step
//	take LIMITS, peek LIMITS, each LIMITS, usage LIMITS, take LIMITS within TIME
//	exempt LIMITS                 is a take for which no limit holds
//	flow N TIME LIMITS            takes limits so often, each time after a time, and counts the answers
//	go NAME: take LIMITS          begins a call; leave NAME ends its context; end NAME waits for its answer,
//	                              end NAME now, end NAME soon: for no more than a second
//	settle CALL COST …, later CALL COST …, refund CALL
//	hold LIMIT TIME, holdoff LIMIT TIME, release LIMIT, reset LIMIT
//	meter NAME CALL USED …, charge NAME COST …, held NAME, close NAME COST …
//	used NAME COST …              charges a meter until it refuses, and tells how often it did not
//	override RULE FIELD=VALUE …   also of rule/key, of rule share=PATTERN, and of all; override nothing ends all; unread at
//	                              the end: limiters read it soon
//	source fails, rejects, hangs  and source ignores, which hangs whatever its context says; source panics, source answers
//	store fails, store answers, store is late TIME, store is late TIME back, store loses renewals, store loses answers,
//	                              store panics, store hangs, whatever contexts say
//	switch on, switch off         of all limits
//	load FACTOR                   is what scalers of rules that are adaptive say from then on: they panic at NaN, and hang at Inf
//	register NAME …               registers rules, and tells why it panics; change NAME FIELD=VALUE … changes one in use
//	events KIND, log, findings, permits, leased, rules, enabled; trips to the store
//	lines TEXT                    tells how many lines of the log have a text; found CODE, how many rules have a finding
//	exceeded NAME                 tells which soft limits a call has exceeded, and those that it was made under
//	tenants LIMIT                 tells who shares it; key LIMIT tells its key in Redis
//	check RULES                   tells whether the overrides that were written last fit them
//	processes, refused            tell what limiters have reported to Redis, and whom they have refused
//	advance TIME, close           ends the limiter
//
// A step that begins with 3x is done three times, with the steps behind its semicolons; # in it is the
// number of the time, from 0 on. Limits are RULE/KEY COST FIELD=VALUE … + …. Two words may follow them:
// as NAME names the decision, for a later settle, and show FIELD adds retry, reset, limit, text or status to the
// answer. A step within TIME has a context that ends then, one overdue TIME has a deadline by which it does not end, and
// one under NAME has the context of a call. A step that
// takes time says how much.
type program struct {
	player
	store     *faulty
	limiters  map[string]*process
	rules     map[string]*runtime.Rule
	calls     map[string]*call
	meters    map[string]*runtime.Meter
	options   []string
	overrides bool                 // are changed
	apart     func() runtime.Store // that of another process, or nil if all share one
	load      atomic.Uint64
	hanging   atomic.Int64 // answers of the scaler that hang, or have
	own       *Own         // or nil
}

// Factor implements [rule.Scaler].
func (p *program) Factor(rule.Load) float64 {
	factor := math.Float64frombits(p.load.Load())
	if math.IsInf(factor, 1) && p.hanging.Add(1) > 1 {
		panic("asked while it hangs")
	}
	for ; math.IsInf(factor, 1); factor = math.Float64frombits(p.load.Load()) {
		time.Sleep(time.Millisecond)
	}
	if math.IsNaN(factor) {
		panic("scaler")
	}
	return factor
}

// A process is a limiter of a program.
type process struct {
	*runtime.Limiter
	board board
	every time.Duration // it looks at the board
	heard Events
	other Events // of a second observer, which hears the same
	log   limittest.Lines
	read  int // of the log
	on    atomic.Bool
}

// enabled is the limiter's kill switch.
func (l *process) enabled() bool {
	if l.heard.panics {
		panic("kill switch")
	}
	return l.on.Load()
}

// A call is one that has begun, and its decision.
type call struct {
	ctx      context.Context
	decision runtime.Decision
	answer   chan string
	cancel   context.CancelFunc
	began    time.Time
}

// A board has the overrides that a program writes.
type board struct {
	mu   sync.Mutex
	now  runtime.Overrides
	does string // in place of an answer
	over chan struct{}
}

func (b *board) Overrides(ctx context.Context) (runtime.Overrides, error) {
	b.mu.Lock()
	now, does := b.now, b.does
	b.mu.Unlock()
	switch does {
	case "fails":
		return runtime.Overrides{}, errFault
	case "rejects":
		return runtime.Overrides{}, fmt.Errorf("line 7: %w", runtime.ErrInvalidOverrides)
	case "hangs":
		<-ctx.Done()
		return runtime.Overrides{}, ctx.Err()
	case "panics":
		panic("source")
	case "ignores":
		<-b.over
	}
	return now, nil
}

func (b *board) turn(does string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.does == "ignores" {
		close(b.over)
	}
	b.does, b.over = does, make(chan struct{})
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
	p.wait()
	if took := time.Since(begin); took > 0 && (p.own == nil || !p.own.Outside) && !strings.Contains(text, "advance ") && !strings.Contains(text, "override ") && !strings.Contains(text, "flow ") && !strings.Contains(text, " soon") {
		a += fmt.Sprint(", after ", took)
	}
	return a
}

// wait returns when nothing moves in the bubble, if there is one.
func (p *program) wait() {
	if p.own == nil || !p.own.Outside {
		synctest.Wait()
	}
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
	ctx, text, done := p.context(l, text)
	defer done()
	verb, rest, _ := strings.Cut(text, " ")
	words := strings.Fields(rest)
	if p.own != nil && p.own.Do != nil {
		if answer, is := p.own.Do(verb, words); is {
			return answer
		}
	}
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
		return p.take(ctx, l, nil, rest)
	case "exempt":
		return p.take(runtime.WithoutLimits(ctx), l, nil, rest)
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
		return Words(l.Hold(ctx, p.limit(words[0]), p.duration(words[1])))
	case "holdoff":
		gone, cancel := context.WithCancel(ctx)
		cancel()
		wrapper.HoldOff(gone, l.Limiter, p.limit(words[0]), p.duration(words[1]))
	case "release":
		return Words(l.Release(ctx, p.limit(rest)))
	case "reset":
		return Words(l.Reset(ctx, p.limit(rest)))
	case "meter":
		c := p.call(words[1])
		p.meters[words[0]] = l.Meter(c.ctx, c.decision, p.numbers(words[2:])...)
	case "charge":
		return Words(p.meters[words[0]].Charge(p.numbers(words[1:])...))
	case "used":
		for n := 0; ; n++ {
			if err := p.meters[words[0]].Charge(p.numbers(words[1:])...); err != nil {
				return fmt.Sprintf("%d, then %s", n, Words(err))
			}
		}
	case "held":
		return fmt.Sprint(p.meters[words[0]].Advance(0))
	case "close":
		if len(words) == 0 {
			return Words(l.Close())
		}
		p.meters[words[0]].Close(p.numbers(words[1:])...)
	case "override":
		p.override(l, words)
	case "source":
		l.board.turn(words[0])
	case "store":
		p.store.begin(p, words)
	case "register":
		return p.register(l, words)
	case "switch":
		l.on.Store(words[0] == "on")
	case "advance":
		time.Sleep(p.duration(words[0]))
	default:
		return p.tell(ctx, l, verb, words)
	}
	return ""
}

// ofStep is a key of contexts of steps, which all that is told in one has.
type ofStep struct{}

// OfStep returns a context of a step.
func OfStep(ctx context.Context) context.Context { return context.WithValue(ctx, ofStep{}, true) }

// context returns that of a step, and the step without what says so.
func (p *program) context(l *process, text string) (ctx context.Context, rest string, done context.CancelFunc) {
	ctx, done = OfStep(context.Background()), func() {}
	if l == nil || strings.HasPrefix(text, "go ") {
		return ctx, text, done
	}
	text, name, is := cutWord(text, " under ")
	if is {
		ctx = p.call(name).ctx
	}
	if text, name, is = cutWord(text, " within "); is {
		ctx, done = context.WithTimeout(ctx, p.duration(name))
	}
	if text, name, is = cutWord(text, " overdue "); is {
		ctx = lateContext{ctx, time.Now().Add(p.duration(name))}
	}
	ctx = observe.WithRecorder(observe.WithRefusalRecorder(wrapper.WithExceeded(ctx), l.heard.refused), l.heard.recorded)
	return ctx, text, done
}

// A lateContext has a deadline, and does not end by it.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// cutWord returns a text without the word that stands behind another, and that word.
func cutWord(text, behind string) (rest, word string, is bool) {
	rest, word, is = strings.Cut(text, behind)
	word, after, more := strings.Cut(word, " ")
	if more {
		rest += " " + after
	}
	return rest, word, is
}

func (p *program) call(name string) *call {
	c := p.calls[name]
	if c == nil {
		p.Fatalf("no call is named %s", name)
	}
	return c
}
