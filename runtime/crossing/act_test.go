package crossing

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/documents"
	"github.com/rategen/rategen/runtime/rule"
)

func (c call) run(p *process) {
	number := p.callers.Add(1)
	p.calls.Go(func() {
		for range 1 + c.Next {
			if c.Each {
				p.takeEach(c, number)
			} else {
				p.takeOnce(c, number)
			}
		}
	})
}

// takeOnce makes a call and, if that is refused and is to, comes again. It settles it.
func (p *process) takeOnce(c call, number int64) {
	a := p.take(c, number)
	if a.err != nil && c.Hasty {
		a = p.take(c, number)
	}
	if retry := a.d.RetryAfter; c.Again && a.err != nil && retry > 0 && retry < time.Hour {
		if c.Early {
			p.sleep(retry-time.Microsecond, number)
			if a = p.take(c, number); a.err != nil {
				retry = time.Microsecond
			}
		}
		if a.err != nil {
			if p.still() {
				p.sleep(retry, number)
			} else {
				time.Sleep(retry) // to the nanosecond: what is told from memory has these
			}
			a = p.take(c, number)
		}
	}
	settles := p.isSettled(a)
	if settles || c.Next > 0 {
		p.sleep(c.Holds, number)
	}
	if settles {
		p.settle(a)
	}
}

// sleep waits, until about the time at which the store's clock has gone on by d. No two
// callers wake up at the same moment, so that a program does the same each time.
func (r *running) sleep(d time.Duration, caller int64) {
	until := time.Now().Add(d)
	time.Sleep(time.Until(until.Truncate(time.Microsecond).Add(time.Duration(caller % 1000))))
}

// context returns the context of a call, whose decisions a listener is told, and what ends it.
func (c call) context(to *listener) (ctx context.Context, end func()) {
	ctx = context.WithValue(context.Background(), caller{}, to)
	if c.Exempt {
		ctx = runtime.WithoutLimits(ctx)
	}
	if c.Cancel == 0 {
		return ctx, func() {}
	}
	if c.Deadline {
		return context.WithTimeout(ctx, c.Cancel)
	}
	ctx, cancel := context.WithCancel(ctx)
	leaves := time.AfterFunc(c.Cancel, cancel)
	return ctx, func() { leaves.Stop(); cancel() }
}

// ask begins the record of a decision.
func (p *process) ask(c call, uses []use) *asked {
	a := &asked{process: p.number, call: c, uses: uses, each: c.Each, reported: make([]reported, len(uses))}
	p.history.add(a)
	a.start, a.came, a.turn = p.now(), p.moment(), p.work.Add(1)
	return a
}

// take makes a call, and looks before and after it. If the call is metered it returns when
// that is over.
func (p *process) take(c call, number int64) *asked {
	a, limits := p.ask(c, c.Uses), p.limits(c.Uses)
	to := &listener{[]*asked{a}}
	ctx, end := c.context(to)
	defer end()
	a.before = p.peek(limits)
	d, err := p.limiter.Take(ctx, limits...)
	a.after, a.usage = p.peek(limits), p.usage(a)
	a.alone = p.work.Add(1) == a.turn+1 && p.troubled.Load() == 0
	a.end, a.knows = p.now(), p.moment()
	if !a.heard {
		a.at = a.end
	}
	a.d, a.err = d, err
	if err == nil && c.Meter != nil {
		p.meter(ctx, to, a, number)
	}
	return a
}

// peek looks at limits where time stands still meanwhile.
func (p *process) peek(limits []runtime.Limit) *peeked {
	if !p.still() || p.troubled.Load() > 0 {
		return nil
	}
	d, err := p.limiter.Peek(context.Background(), limits...)
	return &peeked{d, err}
}

// usage looks at the use of a call that has only one, as peek does.
func (p *process) usage(a *asked) *runtime.Usage {
	if len(a.uses) != 1 || !p.still() || p.troubled.Load() > 0 {
		return nil
	}
	usages, err := p.limiter.Usage(context.Background(), p.limits(a.uses)...)
	if err != nil || len(usages) == 0 {
		return nil
	}
	return &usages[0]
}

// others is the rule of limits whose decisions nobody looks at.
var others = &runtime.Rule{Name: "others", Window: time.Minute, Max: 1000, Algorithm: runtime.FixedWindow}

// takeEach makes a call of each use.
func (p *process) takeEach(c call, number int64) {
	var all []*asked
	for i := range c.Uses {
		all = append(all, p.ask(c, c.Uses[i:i+1]))
	}
	p.work.Add(1)
	ctx, end := c.context(&listener{all})
	defer end()
	limits := p.limits(c.Uses)
	for i := range c.Beside {
		limits = append(limits, others.Limit(runtime.NewKey().AddInt(int64(i))))
	}
	outcomes := p.limiter.TakeEach(ctx, limits...)[:len(all)]
	p.work.Add(1)
	for i, o := range outcomes {
		a := all[i]
		a.end, a.knows, a.d, a.err = p.now(), p.moment(), o.Decision, o.Err
		if !a.heard {
			a.at = a.end
		}
	}
	p.sleep(c.Holds, number)
	for _, a := range all {
		if p.isSettled(a) {
			p.settle(a)
		}
	}
}

func (r reset) run(p *process) {
	h := &happening{rule: r.Rule, key: r.Key, process: p.number, from: p.now()}
	p.work.Add(1)
	p.sleep(time.Microsecond, 0) // no server does two requests within one, but here time stands still
	u := use{Rule: r.Rule, Key: r.Key, Cost: 1}
	p.note("in p%d: reset %v -> %s", p.number, u, documents.Words(p.limiter.Reset(context.Background(), p.limits([]use{u})[0])))
	p.sleep(time.Microsecond, 0)
	h.to = p.now()
	p.history.resets = append(p.history.resets, h)
}

// run has overrides in force when it returns.
func (c change) run(p *process) {
	h := &happening{from: p.now(), rules: c.Rules, off: c.Off}
	o := runtime.Overrides{Rules: map[string]rule.Override{}}
	for i, override := range c.Rules {
		o.Rules[p.program.Rules[i].Name] = override
	}
	if c.Off && !c.Switch {
		o.Enabled = new(false)
	}
	p.overrides.Store(&o)
	p.noteChange(c)
	off := c.Off && c.Switch
	if off { // else the limits that were switched off stay so until the overrides are read
		p.off.Store(true)
		p.noteSwitch(true)
	}
	if p.exact() {
		p.sleep(3*p.history.scope.poll(), 0) // each limiter polls meanwhile
	}
	for _, other := range p.processes {
		for polls := other.polls.Load(); !p.exact() && other.polls.Load() < polls+2; { // the first may have begun before
			time.Sleep(p.history.scope.poll() / 2)
		}
	}
	if p.off.Swap(off) && !off {
		p.noteSwitch(false)
	}
	h.to = p.now()
	p.history.changes = append(p.history.changes, h)
}

func (f forget) run(p *process) {
	p.note("# all servers forget the scripts")
	if f.Amid == nil {
		p.begin(unscripted)()
		return
	}
	f.Amid.run(p)
	p.sleep(f.Amid.Holds/2, 0)
	p.begin(unscripted)()
	load := call{Uses: slices.Clone(f.Amid.Uses)}
	load.Uses[0].Key = unused
	load.run(p.processes[(p.number+1)%len(p.processes)])
}

func (j jump) run(p *process) {
	h := &happening{from: p.now(), by: j.By}
	p.note("# set the clock by %v", j.By)
	p.jump(j.By)
	h.to = p.now()
	if p.exact() {
		h.from = h.to
	}
	p.history.jumps = append(p.history.jumps, h)
}

// busyCalls is how many calls use up most limits.
const busyCalls = 12

func (t trouble) run(p *process) {
	if !p.exact() && p.troubled.Load() > 0 {
		return // servers have one fault at a time: nobody moves a slot twice at once
	}
	if t.Busy != nil {
		for range busyCalls {
			t.Busy.run(p)
			p.rest()
		}
	}
	h := &happening{fault: t.Kind, from: p.now(), to: endless}
	p.history.faults = append(p.history.faults, h)
	p.troubled.Add(1)
	p.note("%s", faultSteps[t.Kind])
	end := p.begin(t.Kind)
	p.calls.Go(func() {
		over := time.Now().Add(t.Lasts)
		for t.Busy != nil && time.Until(over) > t.Every {
			time.Sleep(t.Every)
			t.Busy.run(p)
		}
		time.Sleep(time.Until(over))
		p.note("store answers")
		end()
		h.to = p.now()
		p.troubled.Add(-1)
	})
}
