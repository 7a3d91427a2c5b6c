package decide

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// An answer is what a store says of the charges that it is asked about.
type answer int

const (
	room  answer = iota
	turn         // of a queue half a second later, and room for the others then
	soon         // none now
	never        // none in time
	away         // no answer
	panics
)

type toggle bool

func (t *toggle) Enabled() bool { return !bool(*t) }

// A stateCase is a call that meets an event in a state.
type stateCase struct {
	name    string
	rules   []*rule.Rule
	answers []answer
	happens func(*machine) // after a tenth of a second
	state   State
	err     error
	after   time.Duration // that the call has taken
}

const begin = 100 * time.Millisecond

// stateCases are calls that meet each event in each state.
func stateCases() []stateCase {
	const wait = 10 * time.Second
	window := &rule.Rule{Name: "window", Algorithm: rule.SlidingLog, Window: time.Minute, Max: 9, Wait: wait, Fail: rule.FailClosed}
	queue := &rule.Rule{Name: "queue", Algorithm: rule.LeakyBucket, Window: time.Minute, Max: 9, Wait: wait, Fail: rule.FailClosed}
	permit := &rule.Rule{Name: "permit", Algorithm: rule.Concurrency, Window: time.Minute, Max: 9, Wait: wait, Fail: rule.FailClosed}
	once := &rule.Rule{Name: "once", Algorithm: rule.SlidingLog, Window: time.Minute, Max: 9, Fail: rule.FailClosed}
	line, beside, permits := []*rule.Rule{window}, []*rule.Rule{queue, window}, []*rule.Rule{queue, permit}
	cancel := func(m *machine) { m.cancel() }
	shut := func(m *machine) { close(m.closed) }
	wake := func(m *machine) { m.Lines.Wake(m.waitsFor, 1) }
	off := func(m *machine) { m.off = true; m.override(nil) }
	double := func(m *machine) { m.override(map[string]rule.Override{"queue": {Max: new(int64(18))}}) }
	return []stateCase{
		{"planned, room", []*rule.Rule{once}, []answer{room}, nil, Admitted, nil, 0},
		{"planned, no room", []*rule.Rule{once}, []answer{soon}, nil, Refused, nil, 0},
		{"planned, no answer", []*rule.Rule{once}, []answer{away}, nil, Undecided, ErrUnavailable, 0},
		{"planned, no room in time", line, []answer{never}, nil, Refused, nil, 0},
		{"planned, panic", line, []answer{panics}, nil, Planned, errPanic, 0},
		{"in line, room", line, []answer{soon, room}, wake, Admitted, nil, begin},
		{"in line, no other room", line, []answer{soon, room}, nil, Admitted, nil, time.Second},
		{"in line, no room again", line, []answer{soon, soon, room}, wake, Admitted, nil, begin + time.Second},
		{"in line, no room in time", line, []answer{soon, never}, wake, Refused, nil, begin},
		{"in line, no answer", line, []answer{soon, away}, wake, Undecided, ErrUnavailable, begin},
		{"in line, panic", line, []answer{soon, panics}, wake, Woken, errPanic, begin},
		{"in line, override", line, []answer{soon, room}, func(m *machine) {
			m.override(map[string]rule.Override{"window": {Max: new(int64(10))}})
		}, Admitted, nil, begin},
		{"in line, switched off", line, []answer{soon}, off, Admitted, nil, begin},
		{"in line, context", line, []answer{soon}, cancel, Left, context.Canceled, begin},
		{"in line, closed", line, []answer{soon}, shut, Left, ErrClosed, begin},
		{"in a queue, turn", beside, []answer{turn, room}, nil, Admitted, nil, 5 * begin},
		{"in a queue, override", beside, []answer{turn, room}, double, Admitted, nil, 3 * begin},
		{"in a queue, switched off", beside, []answer{turn}, off, Admitted, nil, begin},
		{"in a queue, context", beside, []answer{turn}, cancel, LeftQueue, context.Canceled, begin},
		{"in a queue, closed", beside, []answer{turn}, shut, LeftQueue, ErrClosed, begin},
		{"at its turn, no room in time", beside, []answer{turn, never}, nil, Refused, nil, 5 * begin},
		{"at its turn, no answer", beside, []answer{turn, away}, nil, Undecided, ErrUnavailable, 5 * begin},
		{"at its turn, panic", beside, []answer{turn, panics}, nil, Turned, errPanic, 5 * begin},
		{"at its turn, another place", beside, []answer{turn, soon, turn, room}, nil, Admitted, nil, 10 * begin},
		{"at its turn, permits", permits, []answer{turn, soon, room}, nil, Admitted, nil, 5*begin + permitPause},
		{"at its turn, context in line", permits, []answer{turn, soon}, func(m *machine) { time.Sleep(4*begin + time.Millisecond); m.cancel() }, Left, context.Canceled, 5*begin + time.Millisecond},
	}
}

// play returns what is wrong with a case, or "".
func (c *stateCase) play(t *testing.T) (wrong string) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, c.answers)
		if c.happens != nil {
			go func() { time.Sleep(begin); synctest.Wait(); c.happens(m) }()
		}
		start := time.Now()
		state, err := m.run(c.rules)
		took := time.Since(start)
		lines, calls := m.Lines.Count()
		time.Sleep(10 * begin) // what happens to a call may come when it is over
		switch {
		case state != c.state || !errors.Is(err, c.err) || took > c.after || took < c.after-permitPause:
			wrong = fmt.Sprintf("state %d after %v, %v: want %d after %v, %v", state, took, err, c.state, c.after, c.err)
		case len(m.answers) > 0 && err == nil:
			wrong = fmt.Sprintf("the store was not asked %d times more", len(m.answers))
		case lines+calls > 0:
			wrong = fmt.Sprintf("%d calls are left in %d lines", calls, lines)
		case m.waiting != 0:
			wrong = fmt.Sprintf("%d calls are told to wait that have ended", m.waiting)
		}
	})
	return wrong
}

// TestStates has calls meet events in each state. Without any one of the transitions a case fails.
func TestStates(t *testing.T) {
	cases := stateCases()
	for _, c := range cases {
		if wrong := c.play(t); wrong != "" {
			t.Errorf("%s: %s", c.name, wrong)
		}
	}
	for from := range next {
		for ev, to := range next[from] {
			if to == Planned {
				continue
			}
			next[from][ev] = Left
			if to == Left {
				next[from][ev] = Refused
			}
			if !slices.ContainsFunc(cases, func(c stateCase) bool { return c.play(t) != "" }) {
				t.Errorf("no case takes a call on from state %d by event %d", from, ev)
			}
			next[from][ev] = to
		}
	}
}

// TestDrawing wants ARCHITECTURE.md to draw the transitions. A call that has woken is planned again.
func TestDrawing(t *testing.T) {
	names := [states]string{"Planned", "Planned", "Lined", "Queued", "Turned", "TurnLined", "[*]", "[*]", "[*]", "[*]", "[*]"}
	happen := [events]string{"fits", "reaches", "lacks", "waits", "refuses", "fails", "wakes", "ends"}
	var want []string
	for from := range next {
		all := map[string][]string{}
		for ev, to := range next[from] {
			if to != Planned {
				all[names[to]] = append(all[names[to]], happen[ev])
			}
		}
		for to, by := range all {
			want = append(want, fmt.Sprintf("  %s --> %s: %s", names[from], to, strings.Join(by, ", ")))
		}
	}
	page, err := os.ReadFile("../../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, drawn, _ := strings.Cut(string(page), "stateDiagram-v2\n")
	drawn, _, _ = strings.Cut(drawn, "\n```")
	got := strings.Split(drawn, "\n")
	slices.Sort(got)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("ARCHITECTURE.md draws\n%s\nand calls go\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A machine is an engine whose store gives some answers.
type machine struct {
	Engine
	answers  []answer
	ctx      context.Context
	cancel   context.CancelFunc
	closed   chan struct{}
	off      toggle
	waitsFor []byte
	waiting  int
}

var errPanic = errors.New("the store has panicked")

func newMachine(t *testing.T, answers []answer) *machine {
	m := &machine{answers: answers, closed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(t.Context())
	t.Cleanup(m.cancel)
	m.Engine = Engine{
		Store: storeFunc{take: m.take}, Alone: memstate.NewStore(8), Plans: &plan.Plans{Replicas: 1, NewPlan: func(*plan.Plan) {}},
		Lines: &ledger.Lines{Most: 8}, Permits: &ledger.New(ledger.Config{}).Permits, Switch: &m.off, Closed: m.closed,
		Events: silent(&observe.Observer{Wait: func(_ context.Context, ev observe.WaitEvent) {
			m.waiting--
			if ev.Waiting {
				m.waiting += 2
			}
		}}),
	}
	m.override(nil)
	return m
}

// silent returns events that an observer hears, and no logger.
func silent(o *observe.Observer) *report.Events {
	e := report.NewEvents(nil, slog.New(slog.DiscardHandler))
	e.Observe(o)
	return e
}

// override puts overrides of rules in force.
func (m *machine) override(rules map[string]rule.Override) {
	o, err := plan.NewOverrides(nil, rules, nil)
	if err != nil {
		panic(err)
	}
	m.Plans.Override(plan.NewOverrideSet(o, func(error) {}))
}

// run runs a call of some rules as a limiter does.
func (m *machine) run(rules []*rule.Rule) (state State, err error) {
	var limits []rule.Limit
	for _, r := range rules {
		limits = append(limits, r.Limit(rule.NewKey()))
	}
	c := NewCall(Take)
	defer c.Free()
	defer func() {
		if recover() != nil {
			state, err = c.State, errPanic
		}
	}()
	if err = m.Plan(m.ctx, c, limits); err != nil {
		return c.State, err
	}
	_, err = m.Run(m.ctx, c, limits)
	c.End(m.ctx, err == nil)
	return c.State, err
}

func (m *machine) take(calls []terms.Call) error {
	var next answer
	next, m.answers = m.answers[0], m.answers[1:]
	if next == away {
		return errors.New("the store is away")
	}
	if next == panics {
		panic("the store panics")
	}
	for i := range calls[0].Charges {
		c := &calls[0].Charges[i]
		c.Result = terms.Result{Allowed: next <= turn}
		if next <= turn && !c.Deferred {
			c.At = 1
		}
		if next == turn && c.Algorithm.Row().Name == "leaky-bucket" {
			c.Delay = time.Second / 2
		} else if next == soon {
			c.RetryAfter, m.waitsFor = time.Second, slices.Clone(c.Key)
		} else if next == never {
			c.RetryAfter = time.Hour
		}
	}
	return nil
}
