package script

import (
	"slices"

	"github.com/rategen/rategen/runtime/rediswire"
)

// Refill prepares the execution again for a server whose clock shows another time.
func (e *Execution) Refill(now int64) {
	e.Now = now
	e.fill(e.calls, e.times, e.outcomes)
}

// Behind has the execution, which is to be sent behind another one that settles, find what
// that gives back: no server executes this one that does not know the script of that one.
func (e *Execution) Behind(settles *Execution) { e.pair, settles.pair = settles, e }

// TextComesWith reports whether another execution, sent before, brings the text that this one
// needs.
func (e *Execution) TextComesWith(other *Execution) bool {
	return other.WithText && other.Server == e.Server && (other.request.set == e.request.set || other.pair == e)
}

// textOf returns the script of the execution, which is sent together with others.
func (l *Library) textOf(e *Execution, others []*Execution) *text {
	if e.pair != nil && slices.Contains(others, e.pair) {
		ahead, behind := e, e.pair
		if e.op != Settle {
			ahead, behind = behind, ahead
		}
		t := l.pair(ahead.request.set, behind.request.set)
		if t != nil {
			return t
		}
		ahead.WithText = true
	}
	t := l.texts[e.request.set].Load()
	if t == nil {
		t = l.text(e.request.set)
	}
	return t
}

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
	e.fill(e.calls, e.times, e.outcomes)
}

// Split prepares part for the calls from the i-th on and leaves the execution
// those before. Both may then be sent again, as the execution was.
func (e *Execution) Split(part *Execution, i int) {
	part.Server, part.Asking, part.op, part.Now, part.pair, e.pair = e.Server, e.Asking, e.op, e.Now, nil, nil
	part.fill(e.calls[i:], e.times[i:], e.outcomes[i:])
	e.fill(e.calls[:i], e.times[:i], e.outcomes[:i])
}

// Route sends the execution by a client that finds the server by the key.
func (e *Execution) Route(client rediswire.Client) { e.Server, e.Asking = client, false }
