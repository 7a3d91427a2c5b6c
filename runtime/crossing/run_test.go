package crossing

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

// A world is where a program runs.
type world interface {
	// store returns the store of a process.
	store(process int) runtime.Store
	// now is the time by the oracle's clock, in microseconds as stores have it, and moment is
	// the time itself.
	now() time.Duration
	moment() time.Duration
	// rest returns when all that can happen by now has happened, where that can be
	// known.
	rest()
	// jump sets the store's clock.
	jump(by time.Duration)
	// begin begins a fault, and returns what ends it.
	begin(f fault) (end func())
	// options are those of limiters.
	options() []runtime.Option
	// exact reports whether it is known when a decision was made, and back how long that is
	// ago when it is told. That of a call on whose way the clock was set is not known.
	exact() bool
	back(since time.Duration) time.Duration
	// still reports whether time stands still while something is decided.
	still() bool
	// parts reports whether the limits of a call may be decided one after the other.
	parts() bool
}

// A process is a limiter of a program that runs.
type process struct {
	*running
	number  int
	limiter *runtime.Limiter
	polls   atomic.Int64
}

// running is a program that runs in a world.
type running struct {
	world
	history   *history
	program   *program
	processes []*process
	overrides atomic.Pointer[runtime.Overrides]
	off       atomic.Bool // the program's own switch
	edited    edited      // in place of overrides
	calls     sync.WaitGroup
	work      atomic.Int64 // how much has begun or ended
	troubled  atomic.Int64 // faults that are under way
	callers   atomic.Int64 // how many have come
	surges    atomic.Int64 // how many surges
}

// run runs a program, and returns its history when nothing of it runs any more.
func run(p *program, s *scope, w world) *history {
	h := &history{program: p, scope: s, exact: w.exact(), still: w.still(), parts: w.parts(), began: time.Now(), closed: endless, edges: map[*runtime.Rule][]time.Time{}, changes: []*happening{{}}}
	r := &running{world: w, history: h, program: p, edited: edited{}}
	r.overrides.Store(&runtime.Overrides{})
	p.load.set(1)
	if real, is := w.(*redisWorld); is {
		beats := real.pulse()
		defer func() { h.busy = beats.stop() }()
	}
	for i := range p.Processes {
		r.processes = append(r.processes, r.start(i))
	}
	for _, step := range p.Steps {
		time.Sleep(step.Gap)
		step.run(r)
	}
	if p.Closes {
		h.closed = w.now()
		r.note("in p0: close")
		_ = r.processes[0].limiter.Close() // leave looks at the error
	}
	r.calls.Wait()
	h.ended, h.lived = w.now(), time.Since(h.began)
	for _, p := range r.processes {
		h.listed = append(h.listed, p.limiter.Findings())
	}
	r.leave()
	return h
}

// run begins a step. What happens again happens while other steps do, if time passes in
// between.
func (s step) run(r *running) {
	p := r.processes[s.Process]
	s.Do.run(p)
	r.rest()
	switch {
	case s.Times < 2:
	case s.Every == 0:
		for range s.Times - 1 {
			s.Do.run(p)
			r.rest()
		}
	default:
		number := r.callers.Add(1)
		r.calls.Go(func() {
			for range s.Times - 1 {
				r.sleep(s.Every, number)
				s.Do.run(p)
			}
		})
	}
}

// start starts a process.
func (r *running) start(number int) *process {
	p := &process{running: r, number: number}
	options := append(r.options(), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithReplicas(r.program.Replicas), runtime.WithObserver(&observe.Observer{Decision: hear(r), Threshold: listen(r)}))
	if r.program.Cap != nil {
		options = append(options, runtime.WithProcessCap(r.program.Cap))
	}
	if r.program.Polled {
		source := runtime.OverrideSource(runtime.OverrideFunc(func(context.Context) (runtime.Overrides, error) {
			defer p.polls.Add(1)
			return *r.overrides.Load(), nil
		}))
		if w, is := r.world.(*wire); is && r.program.Edited {
			source = w.overridesSource()
		}
		options = append(options, runtime.WithEnabled(func() bool { return !r.off.Load() }), runtime.WithOverrides(source, r.history.scope.poll()))
	}
	if _, is := r.world.(*wire); is { // where months pass, of 40,000 reports each
		options = append(options, runtime.WithoutReports())
	}
	p.limiter = runtime.New(r.store(number), options...)
	for i, rule := range r.program.Rules {
		if !beside(r.program, i) { // which has other numbers
			p.limiter.Register(rule)
		}
	}
	return p
}

// poll is how often overrides are looked for.
func (s *scope) poll() time.Duration { return s.window / 50 }

type caller struct{}

// A listener is told of the decisions of a call.
type listener struct{ asked []*asked }

// hear has decisions told to the calls that asked for them.
func hear(r *running) func(context.Context, observe.DecisionEvent) {
	return func(ctx context.Context, ev observe.DecisionEvent) {
		to, _ := ctx.Value(caller{}).(*listener)
		if to == nil {
			return
		}
		for _, a := range to.asked {
			i := slices.IndexFunc(a.uses, func(u use) bool { return r.program.Rules[u.Rule].Name == ev.Rule })
			if i < 0 || a.each && (a.reported[i].yes || a.uses[i].Cost != ev.Cost) { // TakeEach may have it twice
				continue
			}
			a.heard, a.at = true, r.now()
			if a.more {
				a.uses[i].Cost, a.portions[i] = ev.Cost, append(a.portions[i], ev.Cost)
			}
			if ev.Source == rule.SourceStore {
				a.at -= r.back(a.start)
			}
			a.reported[i] = reported{yes: true, verdict: ev.Verdict, source: ev.Source, max: ev.Max, limit: ev.Limit, window: ev.Window, mode: ev.Mode}
			return
		}
	}
}

// limits returns what the limiter is asked for a call.
func (r *running) limits(uses []use) (limits []runtime.Limit) {
	for _, u := range uses {
		l := r.program.Rules[u.Rule].Limit(u.key()).WithCost(u.Cost)
		if u.Max > 0 {
			l = l.WithMax(u.Max)
		}
		if l.Rule.Headroom != 0 {
			l = l.WithShare(runtime.NewKey().AddInt(int64(u.Tenant)), max(1, u.Weight))
		}
		if u.Zone != "" {
			l = l.WithPeriod(u.Zone, int64(u.Anchor))
		}
		limits = append(limits, l)
	}
	return limits
}
