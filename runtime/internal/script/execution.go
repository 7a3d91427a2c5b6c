// Package script executes the scripts of package lua. An [Execution] turns calls
// into the arguments of one script and its reply into their results. The package
// sends each execution at most once and tells errors apart by whether the script
// may be sent again.
package script

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/internal/terms"
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
	// Client is the client to send by, if it is not the usual one.
	Client redis.UniversalClient
	// Asking sends ASKING before, for a server that is about to take over the
	// slot.
	Asking bool
	// WithText sends the text of the script along, for a server that does not
	// know it.
	WithText bool
	// Check has the script look first whether the server can count. If it cannot, that is
	// the error, and nothing was charged.
	Check bool
	// Err says why none of the calls was decided, or is nil.
	Err error
	// Clock is the server's time in microseconds when it executed the script; 0: it is
	// not known.
	Clock int64

	routed  bool // the client finds the server by the first key
	op      Operation
	calls   []terms.Call
	times   []int64
	found   []Outcome
	request request
	cmd     redis.IntSliceCmd // one less to allocate
}

// Fill prepares an execution for calls, of which the i-th stands for times[i]
// equal ones. The i-th outcome will be stored to found[i], the results of all
// charges in calls.
func (e *Execution) Fill(op Operation, calls []terms.Call, times []int64, found []Outcome) {
	e.Client, e.Asking, e.routed = nil, false, false
	e.op = op
	e.fill(calls, times, found)
}

func (e *Execution) fill(calls []terms.Call, times []int64, found []Outcome) {
	e.WithText, e.Check, e.Err, e.cmd = false, false, nil, redis.IntSliceCmd{}
	e.calls, e.times, e.found = calls, times, found
	e.request.fill(e.op, calls, times, e.routed)
}

// Route sends the execution by a client that finds the server by the key.
func (e *Execution) Route(client redis.UniversalClient) {
	e.Client, e.Asking, e.routed = client, false, true
	e.request.fill(e.op, e.calls, e.times, true)
}

// Told reports whether another execution, sent before, brings the text that this one
// needs.
func (e *Execution) Told(other *Execution) bool {
	return other.WithText && other.request.set == e.request.set && other.Client == e.Client
}

// Calls returns how many calls the execution is for.
func (e *Execution) Calls() int { return len(e.calls) }

// Shadows reports whether any of the calls has limits in shadow mode behind others.
func (e *Execution) Shadows() bool {
	for i := range e.calls {
		if n := e.calls[i].Enforced(); n > 0 && n < len(e.calls[i].Charges) {
			return true
		}
	}
	return false
}

// DropShadows takes the limits in shadow mode that stand behind others out of their
// calls, with an error of their own. The execution may then be sent again.
func (e *Execution) DropShadows(err error) {
	for i := range e.calls {
		call := &e.calls[i]
		if n := call.Enforced(); n > 0 {
			for j := n; j < len(call.Charges); j++ {
				call.Charges[j].Err = err
			}
			call.Charges = call.Charges[:n]
		}
	}
	e.fill(e.calls, e.times, e.found)
}

// Split prepares part for the calls from the i-th on and leaves the execution
// those before. Both may then be sent again, as the execution was.
func (e *Execution) Split(part *Execution, i int) {
	part.Client, part.Asking, part.routed, part.op = e.Client, e.Asking, e.routed, e.op
	part.fill(e.calls[i:], e.times[i:], e.found[i:])
	e.fill(e.calls[:i], e.times[:i], e.found[:i])
}

// Clear lets go of the calls.
func (e *Execution) Clear() {
	e.Client, e.calls, e.times, e.found, e.Err, e.cmd = nil, nil, nil, nil, nil, redis.IntSliceCmd{}
}

// A command is a Redis command that go-redis runs at most once: it retries
// timeouts by default, and a script that ran before the reply was lost would
// charge twice.
type command struct{ *redis.IntSliceCmd }

// NoRetry overrides the method of redis.IntSliceCmd.
func (command) NoRetry() bool { return true }

// A go-redis that asks no command (before 9.19) would send scripts again and charge
// twice. It does not compile.
var _ interface{ NoRetry() bool } = redis.Cmder(nil)

// ErrPanicked is the error of calls whose client has panicked.
var ErrPanicked = private.New("the redis client panicked, in one of its hooks perhaps")

// Send has a client execute scripts, each at most once, and decodes the replies.
// Several are sent as a pipeline. It returns the value of a panic in the client,
// which may have hooks of the program's: callers who share a batch are not to
// share its panic.
func (l *Library) Send(ctx context.Context, client redis.UniversalClient, executions []*Execution) (panicked any) {
	for _, e := range executions {
		text, args := l.text(e.request.set), e.request.args
		if e.request.op = string(e.op); e.Check {
			e.request.op = check + e.request.op
		}
		args[0], args[1] = "evalsha", &text.hash
		if e.WithText {
			args[0], args[1] = "eval", text.source()
		}
		e.cmd = *redis.NewIntSliceCmd(ctx, args...)
	}
	panicked = send(ctx, client, executions)
	for _, e := range executions {
		numbers, err := e.cmd.Result()
		switch {
		case panicked != nil:
			err = ErrPanicked
		case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
			err = context.Cause(ctx)
		}
		e.decode(numbers, explained(err))
	}
	return panicked
}

func send(ctx context.Context, client redis.UniversalClient, executions []*Execution) (panicked any) {
	defer func() { panicked = recover() }()
	if len(executions) == 1 && !executions[0].Asking {
		_ = client.Process(ctx, command{&executions[0].cmd})
		return nil
	}
	pipeline := client.Pipeline()
	for _, e := range executions {
		if e.Asking {
			_ = pipeline.Process(ctx, redis.NewCmd(ctx, "asking"))
		}
		_ = pipeline.Process(ctx, command{&e.cmd})
	}
	_, _ = pipeline.Exec(ctx)
	return nil
}

// decode stores the results.
func (e *Execution) decode(numbers []int64, err error) {
	e.Err = err
	var reply reply
	e.Clock = 0
	if e.Err == nil {
		reply, e.Err = newReply(numbers)
		e.Clock = reply.clock
	}
	for i := 0; i < len(e.calls) && e.Err == nil; i++ {
		var admitted int64
		if admitted, e.Err = reply.call(&e.calls[i], e.times[i]); e.Err == nil {
			e.found[i] = Outcome{admitted, e.calls[i].Charges[0].Result}
		}
	}
	for i := 0; i < len(e.calls) && e.Err != nil; i++ {
		e.calls[i].Err = e.Err
	}
}
