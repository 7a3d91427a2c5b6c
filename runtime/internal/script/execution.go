// Package script executes the scripts of package lua. An [Execution] turns calls
// into the arguments of one script and its reply into their results. The package
// sends each execution at most once and tells errors apart by whether the script
// may be sent again.
package script

import (
	"context"
	"errors"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
)

// An Outcome is what the script found about equal calls: how many had room, and
// the result of the last of them.
type Outcome struct {
	Admitted int64
	terms.Result
}

// An Execution is one script that is sent for some calls. Its memory is used
// again by the next one that is filled in, so it must not be filled before the
// last one is done.
type Execution struct {
	// Server is the server to send to, if it is not the usual one, or the client of all.
	Server rediswire.Server
	// Asking sends ASKING before, for a server that is about to take over the
	// slot.
	Asking bool
	// WithText sends the text of the script along, for a server that does not
	// know it.
	WithText bool
	// Check has the script look first whether the server can count. If it cannot, that is
	// the error, and nothing was charged.
	Check bool
	// Now is what the server's clock is expected to show, in microseconds. If it shows
	// another period of a calendar the error is [Elsewhen].
	Now int64
	// Err says why none of the calls was decided, or is nil.
	Err error
	// Clock is the server's time in microseconds when it executed the script; 0: it is
	// not known.
	Clock int64

	pair        *Execution // see Behind, or nil
	op          Operation
	calls       []terms.Call
	times       []int64
	outcomes    []Outcome
	request     request
	script      rediswire.Script
	sentScripts []*rediswire.Script // what goes together with this one, which is the first
}

// Fill prepares an execution for calls, of which the i-th stands for times[i]
// equal ones. The i-th outcome will be stored to found[i], the results of all
// charges in calls.
func (e *Execution) Fill(op Operation, calls []terms.Call, times []int64, found []Outcome, now int64) {
	e.Server, e.Asking, e.pair = nil, false, nil
	e.op, e.Now = op, now
	e.fill(calls, times, found)
}

func (e *Execution) fill(calls []terms.Call, times []int64, found []Outcome) {
	e.WithText, e.Check, e.Err = false, false, nil
	e.calls, e.times, e.outcomes = calls, times, found
	e.request.fill(e.op, calls, times, e.Now)
}

func (e *Execution) Calls() int { return len(e.calls) }

func (e *Execution) Clear() {
	e.Server, e.pair, e.calls, e.times, e.outcomes, e.Err = nil, nil, nil, nil, nil, nil
	e.script.Numbers, e.script.Err = nil, nil
}

// Send has a server execute scripts, each at most once, and decodes the replies. It
// returns the value of a panic in the client, which may have hooks of the program's:
// callers who share a batch are not to share its panic.
func (l *Library) Send(ctx context.Context, server rediswire.Server, executions []*Execution) (panicked any) {
	first := executions[0]
	first.sentScripts = first.sentScripts[:0]
	for _, e := range executions {
		text, args := l.texts[e.request.set].Load(), e.request.args
		if text == nil || e.pair != nil {
			text = l.textOf(e, executions)
		}
		e.request.op = string(e.op)
		if e.Check {
			e.request.op = checkPrefix + e.request.op
		}
		args[0], args[1] = "evalsha", &text.hash
		if e.WithText {
			args[0], args[1] = "eval", text.source()
		}
		e.script.Args, e.script.Asking = args, e.Asking
		first.sentScripts = append(first.sentScripts, &e.script)
	}
	panicked = execute(ctx, server, first.sentScripts)
	clear(first.sentScripts)
	for _, e := range executions {
		err := e.script.Err
		if panicked != nil {
			err = ErrPanicked
		} else if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			err = context.Cause(ctx)
		}
		if err != nil {
			err = explain(err)
		}
		e.decode(e.script.Numbers, err)
		if e.request.set&lua.Past != 0 && e.op != Peek {
			e.noteCharged()
		}
	}
	return panicked
}

// noteCharged tells of the charges of a ledger that were made, or may have been.
func (e *Execution) noteCharged() {
	for i := range e.calls {
		call := &e.calls[i]
		denied := e.op == Take && call.Err == nil && !terms.Admitted(call.Charges) && e.outcomes[i].Admitted == 0
		for j := range call.Charges {
			c := &call.Charges[j]
			if c.Ledger && !denied && c.Cost != 0 && c.Label != nil && c.Label.Charged != nil {
				c.Label.Charged(c.Key)
			}
		}
	}
}

func execute(ctx context.Context, server rediswire.Server, scripts []*rediswire.Script) (panicked any) {
	defer func() { panicked = recover() }()
	server.Execute(ctx, scripts)
	return nil
}

// decode stores the results.
func (e *Execution) decode(numbers []int64, err error) {
	e.Err = err
	var reply reply
	e.Clock = 0
	if err == nil && len(numbers) == 0 {
		e.Err = ErrReply
	} else if err == nil {
		reply.clock, reply.numbers = numbers[0], numbers[1:]
		e.Clock = reply.clock
	}
	if e.op == Settle && e.Err == nil {
		e.Err = reply.readSettled(e.calls)
	}
	for i := 0; i < len(e.calls) && e.Err == nil && e.op != Settle; i++ {
		var admitted int64
		if admitted, e.Err = reply.readCall(&e.calls[i], e.times[i], e.op == Peek); e.Err == nil {
			e.outcomes[i] = Outcome{admitted, e.calls[i].Charges[0].Result}
		}
	}
	if len(reply.numbers) > 0 && e.Err == nil {
		e.Err = reply.readShares(e.calls)
	}
	for i := 0; i < len(e.calls) && e.Err != nil; i++ {
		e.calls[i].Err = e.Err
	}
}

// The numbers that begin a part of the reply of take.lua, unless it begins with
// how much is left of a limit.
const (
	replyFailed  = -1
	replyLong    = -2
	replyBlocked = -3 // long, and the caller is blocked
	replyShadow  = -4 // a limit in shadow mode failed beside others
	replyTold    = -5 // the key is over a share
	longFields   = 7
)

// A reply is the part of a reply of take.lua that is not decoded yet.
type reply struct {
	clock   int64
	numbers []int64
}

// readSettled decodes the part about settled calls, of one charge each: those that failed.
func (r *reply) readSettled(calls []terms.Call) error {
	for i := range calls {
		calls[i].Err, calls[i].Charges[0].Err = nil, nil
	}
	for len(r.numbers) > 1 && r.numbers[1] != replyTold {
		i := r.numbers[0] - 1
		if r.numbers = r.numbers[1:]; i < 0 || i >= int64(len(calls)) || len(r.numbers) < 2 || r.numbers[0] != replyFailed {
			return ErrReply
		}
		failure, err := r.readFailure()
		if err != nil {
			return err
		}
		calls[i].Err = failure
	}
	return nil
}

// readCall decodes the part about one call, which stands for so many, and was looked at only or
// not. It returns how many of them had room for their first limit.
func (r *reply) readCall(c *terms.Call, times int64, peek bool) (admitted int64, err error) {
	if len(r.numbers) >= 2 && r.numbers[0] == replyFailed {
		c.Err, err = r.readFailure()
		return 0, err
	}
	c.Err = nil
	for i := range c.Charges {
		charge := &c.Charges[i]
		charge.Err = nil
		if len(r.numbers) >= 2 && r.numbers[0] == replyShadow {
			failure, err := r.readFailure()
			if err != nil {
				return 0, err
			}
			charge.Err = failure
			continue
		}
		allowed, err := r.readCharge(&charge.Result, times)
		if err != nil {
			return 0, err
		}
		if divides[charge.Algorithm] { // see shares.lua
			charge.Behind, charge.Delay = charge.Delay > 0, 0
		}
		if peek && charge.Keep > 0 {
			if err := r.readPast(&charge.Result, charge.Ledger); err != nil {
				return 0, err
			}
		}
		if i == 0 {
			admitted = allowed
		}
	}
	return admitted, nil
}

// readCharge decodes the part about one limit.
func (r *reply) readCharge(result *terms.Result, times int64) (allowed int64, err error) {
	n := r.numbers
	if len(n) >= 2 && n[0] >= 0 {
		*result = terms.Result{Allowed: true, Remaining: n[0], ResetAfter: terms.Micros(n[1]), At: r.clock}
		r.numbers = n[2:]
		if n[1] < 0 {
			result.ResetAfter = terms.Micros(-n[1])
			return times, r.readMark(result)
		}
		return times, nil
	}
	if len(n) >= longFields && (n[0] == replyLong || n[0] == replyBlocked) && n[1] >= 0 && n[1] <= times {
		r.numbers = n[longFields:]
		*result = terms.Result{
			Allowed:    n[1] > 0,
			Remaining:  n[2],
			RetryAfter: terms.Micros(n[3]),
			ResetAfter: terms.Micros(n[4]),
			At:         n[5],
			Delay:      terms.Micros(n[6]),
			Blocked:    n[0] == replyBlocked,
		}
		if n[1] == times {
			result.RetryAfter, result.MoreAfter = 0, result.RetryAfter
		}
		if result.At < 0 {
			result.At = -result.At
			return n[1], r.readMark(result)
		}
		return n[1], nil
	}
	return 0, ErrReply
}

// readMark decodes the mark that follows.
func (r *reply) readMark(result *terms.Result) error {
	if len(r.numbers) == 0 || r.numbers[0] <= 0 {
		return ErrReply
	}
	result.Mark, r.numbers = r.numbers[0], r.numbers[1:]
	return nil
}

// readPast decodes the part about former periods that follows. Entries of a ledger are among them,
// which may be one that the limit does not have.
func (r *reply) readPast(result *terms.Result, ledger bool) error {
	head, each := 3, 3
	if ledger {
		head, each = 8, 4
	}
	n := r.numbers
	if len(n) < head || n[0] < 0 || n[1] <= n[0] || n[2] < 0 || n[2] > int64((len(n)-head)/each) {
		return ErrReply
	}
	p := &terms.Past{Begin: n[0], End: n[1]}
	if ledger {
		p.Used, p.Entry = n[3], terms.Entry{Version: n[4], Epoch: n[5], Whole: n[6] == 1, Base: n[7]}
	}
	end := head + each*int(n[2])
	for c := n[head:end]; len(c) > 0; c = c[each:] {
		last := len(p.Counts) - 1
		if c[0] < c[1] {
			p.Counts = append(p.Counts, terms.Count{Begin: c[0], End: c[1], Used: c[2]})
		} else if ledger && last >= 0 {
			e := terms.Entry{Version: c[0], Epoch: c[1], Base: c[2], Whole: c[3]%2 == 1}
			if c[3] > 1 {
				e.Base = -e.Base
			}
			p.Counts[last].Entry = e
		}
	}
	result.Past, r.numbers = p, n[end:]
	return nil
}
