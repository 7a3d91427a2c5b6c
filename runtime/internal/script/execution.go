// Package script executes the scripts of package lua. An [Execution] turns calls
// into the arguments of one script and its reply into their results. The package
// sends each execution at most once and tells errors apart by whether the script
// may be sent again.
package script

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/private"
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

	op      Operation
	calls   []terms.Call
	times   []int64
	found   []Outcome
	request request
	script  rediswire.Script
	sent    []*rediswire.Script // what goes together with this one, which is the first
}

// Fill prepares an execution for calls, of which the i-th stands for times[i]
// equal ones. The i-th outcome will be stored to found[i], the results of all
// charges in calls.
func (e *Execution) Fill(op Operation, calls []terms.Call, times []int64, found []Outcome, now int64) {
	e.Server, e.Asking = nil, false
	e.op, e.Now = op, now
	e.fill(calls, times, found)
}

func (e *Execution) fill(calls []terms.Call, times []int64, found []Outcome) {
	e.WithText, e.Check, e.Err = false, false, nil
	e.calls, e.times, e.found = calls, times, found
	e.request.fill(e.op, calls, times, e.Now)
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

// Clear lets go of the calls.
func (e *Execution) Clear() {
	e.Server, e.calls, e.times, e.found, e.Err = nil, nil, nil, nil, nil
	e.script.Numbers, e.script.Err = nil, nil
}

// ErrPanicked is the error of calls whose client has panicked.
var ErrPanicked = private.New("the redis client panicked, in one of its hooks perhaps")

// Send has a server execute scripts, each at most once, and decodes the replies. It
// returns the value of a panic in the client, which may have hooks of the program's:
// callers who share a batch are not to share its panic.
func (l *Library) Send(ctx context.Context, server rediswire.Server, executions []*Execution) (panicked any) {
	first := executions[0]
	first.sent = first.sent[:0]
	for _, e := range executions {
		text, args := l.text(e.request.set), e.request.args
		if e.request.op = string(e.op); e.Check {
			e.request.op = check + e.request.op
		}
		args[0], args[1] = "evalsha", &text.hash
		if e.WithText {
			args[0], args[1] = "eval", text.source()
		}
		e.script.Args, e.script.Asking = args, e.Asking
		first.sent = append(first.sent, &e.script)
	}
	panicked = execute(ctx, server, first.sent)
	clear(first.sent)
	for _, e := range executions {
		err := e.script.Err
		switch {
		case panicked != nil:
			err = ErrPanicked
		case ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
			err = context.Cause(ctx)
		}
		e.decode(e.script.Numbers, explained(err))
	}
	return panicked
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
	if e.Err == nil {
		reply, e.Err = newReply(numbers)
		e.Clock = reply.clock
	}
	for i := 0; i < len(e.calls) && e.Err == nil; i++ {
		var admitted int64
		if admitted, e.Err = reply.call(&e.calls[i], e.times[i], e.op == Peek); e.Err == nil {
			e.found[i] = Outcome{admitted, e.calls[i].Charges[0].Result}
		}
	}
	for i := 0; i < len(e.calls) && e.Err != nil; i++ {
		e.calls[i].Err = e.Err
	}
}

// A text is a Lua script: what it knows, and the hash that Redis knows it by. The source
// is made whenever a server has to be told it, which is rare, since scripts that mix
// algorithms are long and there may be many.
type text struct {
	set    uint
	hash   string
	change func(string) string // or nil
}

// source returns the text itself.
func (t *text) source() string {
	source := lua.Take(t.set)
	if t.change != nil {
		source = t.change(source)
	}
	return source
}

// A Library holds the scripts for sets of algorithms, each made when it is first
// needed. How many it has is bounded, for on most servers each stays in the memory of
// Redis: programs whose trips mix many algorithms would otherwise get one for every
// mixture that ever occurs. Zero Libraries share the scripts of package lua.
type Library struct {
	texts [lua.Sets]atomic.Pointer[text]

	mu    sync.Mutex // held to make a script
	mixed int        // scripts of several algorithms

	// Change, if not nil, changes every script, for tests.
	Change func(string) string
	// Wide gives every set but those of one call a script that knows everything, for
	// tests.
	Wide bool
}

var shared Library

// maxMixed is how many scripts of several algorithms there may be. Every other mixture, and
// each that knows former periods, has the script that knows all of them.
const maxMixed = 32

// all are the bits of all algorithms.
const all = 1<<len(lua.Algorithms) - 1

// text returns a script for a set, see lua.Take: one that knows no more than it needs,
// or one that knows everything.
func (l *Library) text(set uint) *text {
	if l.Change == nil && !l.Wide {
		l = &shared
	}
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	switch several := bits.OnesCount(set&all) > 1; {
	case l.Wide && set&lua.Operations != lua.One, several && (l.mixed == maxMixed || set&lua.Past != 0):
		l.texts[set].Store(l.made(wide(set)))
	case several:
		l.mixed++
	}
	return l.made(set)
}

// wide returns what a script knows that can stand for all sets of the same operation, whose
// terms have as many values.
func wide(set uint) uint {
	all := all&^lua.Reserved | set&lua.Reserved | lua.Block
	if set&lua.Past != 0 {
		all |= lua.Reserved | lua.Past
	}
	switch operation := set & lua.Operations; operation {
	case lua.Settle, lua.Renew, lua.Hold:
		return all | operation
	}
	return all | lua.Several
}

// made returns the script of exactly a set. It is made if there is none yet.
func (l *Library) made(set uint) *text {
	if t := l.texts[set].Load(); t != nil {
		return t
	}
	t := &text{set: set, change: l.Change}
	hash := sha1.Sum([]byte(t.source()))
	t.hash = hex.EncodeToString(hash[:])
	l.texts[set].Store(t)
	return t
}
