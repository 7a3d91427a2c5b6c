package script

import "github.com/rategen/rategen/runtime/rediswire"

// Refill prepares the execution again for a server whose clock shows another time.
func (e *Execution) Refill(now int64) {
	e.Now = now
	e.fill(e.calls, e.times, e.outcomes)
}

// Settles reports whether the execution settles, and which script it is then.
func (e *Execution) Settles() (set uint, ok bool) { return e.request.set, e.op == Settle }

// TextComesWith reports whether another execution, sent before, brings the text that this one
// needs.
func (e *Execution) TextComesWith(other *Execution) bool {
	return other.WithText && other.request.set == e.request.set && other.Server == e.Server
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
	part.Server, part.Asking, part.op, part.Now = e.Server, e.Asking, e.op, e.Now
	part.fill(e.calls[i:], e.times[i:], e.outcomes[i:])
	e.fill(e.calls[:i], e.times[:i], e.outcomes[:i])
}

// Route sends the execution by a client that finds the server by the key.
func (e *Execution) Route(client rediswire.Client) { e.Server, e.Asking = client, false }
