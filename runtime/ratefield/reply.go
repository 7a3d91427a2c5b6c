package ratefield

import (
	"context"
	"errors"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

// A Reply is what a program answers a client, of whose call a limit may have refused a part.
type Reply uint8

const (
	// ReplySuccess is no error.
	ReplySuccess Reply = iota
	// ReplyRefusal is a refusal in the program's own words: 429 or 503, RESOURCE_EXHAUSTED or
	// UNAVAILABLE.
	ReplyRefusal
	// ReplyError is an error that the program has chosen: it meant that one.
	ReplyError
	// ReplyUnknown is no answer, or an error that says no more than that there is one: 500, UNKNOWN or
	// INTERNAL.
	ReplyUnknown
)

// An Overruling says which replies to a refused call the refusal takes the place of.
type Overruling uint8

const (
	// OverruleUnknown is the default: [ReplyUnknown].
	OverruleUnknown Overruling = iota
	// OverruleErrors is [ReplyUnknown] and [ReplyError].
	OverruleErrors
	// OverruleNothing is none.
	OverruleNothing
)

// Overrules reports whether a refusal takes the place of a reply.
func (o Overruling) Overrules(by Reply) bool {
	return by == ReplyUnknown && o != OverruleNothing || by == ReplyError && o == OverruleErrors
}

// Refusal returns the refusal that counts for the answer to the call, see [observe.Refusal.Stands]: the
// latest refusal by a limit on its clients; if there was none, the latest by one on calls of the
// service's own; and otherwise the latest of what no limiter could decide. A client may come back
// after each.
func (r *Record) Refusal(policies *Policies) (refusal observe.Refusal, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const undecided, outgoing = 1, 2
	best := 0
	for i := len(r.refusals) - 1; i >= 0; i-- {
		var limited *runtime.LimitedError
		rank := 0
		err := r.refusals[i].Err
		if !r.refusals[i].Stands() {
			continue
		}
		if errors.As(err, &limited) {
			rank = outgoing
			if policies.Lookup(limited.Rule, limited.Outgoing()).Audience != Outgoing {
				return r.refusals[i], true
			}
		} else if errors.Is(err, runtime.ErrUnavailable) {
			rank = undecided
		}
		if rank > best {
			best, refusal = rank, r.refusals[i]
		}
	}
	return refusal, best > 0
}

// Report reports what a client got whose call was refused: the refusal, if that has overruled the reply, or
// the reply. An error that the program has chosen hides no limit on calls of the service's own: the
// program knows why. The route is as in [observe.Refusal.Hidden].
func (p *Policies) Report(ctx context.Context, refusal observe.Refusal, by Reply, overruled bool, route string) {
	var limited *runtime.LimitedError
	if overruled {
		refusal.Overruled(route)
	} else if by == ReplySuccess {
		refusal.Served(ctx)
	} else if by == ReplyUnknown || by == ReplyError && errors.As(refusal.Err, &limited) && p.Lookup(limited.Rule, limited.Outgoing()).Audience != Outgoing {
		refusal.Hidden(ctx, route)
	}
}
