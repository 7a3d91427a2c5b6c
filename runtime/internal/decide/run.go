package decide

import (
	"context"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime/internal/clock"
	"github.com/rategen/rategen/runtime/internal/ledger"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
)

// A State is where a call with any limits is on its way.
type State uint8

const (
	// Planned: its charges are those that hold now.
	Planned State = iota
	// Woken: it has waited, so its charges are to be planned again.
	Woken
	// Lined: it waits in this process for room, or behind those who do.
	Lined
	// Queued: it waits for its turn in a queue. Its other limits are charged then.
	Queued
	// Turned: that has come.
	Turned
	// TurnLined: it waits for permits at its turn.
	TurnLined
	// In these a call is over: every limit has room, one has none, or nobody could say.
	Admitted
	Refused
	Undecided
	// Left: it waited, and its context has ended, or the limiter was closed; of LeftQueue it had a place
	// in a queue, which is to be given back.
	Left
	LeftQueue
	states
)

// An event is what has happened to a call in a state.
type event uint8

const (
	fits    event = iota // every limit has room
	reaches              // every limit has room at its turn
	lacks                // room is to come in time
	waits                // for permits, at its turn
	refuses              // a limit has no room in time
	fails                // nobody could decide
	wakes                // there may be room, or what holds has changed; its turn has come
	ends                 // its context has ended, or the limiter was closed
	events
)

// next is what follows a state when something has happened. What has no place here cannot.
var next = [states][events]State{
	Planned:   {fits: Admitted, reaches: Queued, lacks: Lined, refuses: Refused, fails: Undecided},
	Woken:     {fits: Admitted, reaches: Queued, lacks: Lined, refuses: Refused, fails: Undecided},
	Lined:     {wakes: Woken, ends: Left},
	Queued:    {wakes: Turned, ends: LeftQueue},
	Turned:    {fits: Admitted, lacks: Woken, waits: TurnLined, refuses: Refused, fails: Undecided},
	TurnLined: {wakes: Turned, ends: Left},
}

// Run brings a planned call to its end, in which its State says what became of it. Whatever waits does
// so here, but for a turn that no other limit waits for, see [Engine.AwaitTurn]. The error is that of
// [Engine.Ask] or of [Engine.Plan], the context's, [ErrClosed], or [ledger.ErrNoRoom] of an [Attempt].
func (e *Engine) Run(ctx context.Context, c *Call, limits []rule.Limit) (t *Tried, err error) {
	var since time.Duration // the instant from which on it waits; 0: it may not
	if c.waits() && c.Operation != Attempt {
		since = clock.Now()
	}
	for c.State < Admitted {
		var happened event
		switch c.State {
		case Planned:
			happened, err = e.arrive(ctx, c, since)
		case Woken:
			happened, err = e.tryAgain(ctx, c, limits, since)
		case Lined, TurnLined:
			happened, err = (*waiting)(c).awaitRoom(ctx, limits)
		case Queued:
			happened, err = e.awaitTurn(ctx, c, limits)
		case Turned:
			happened, err = e.tryDue(ctx, c, limits, since)
		}
		c.State = next[c.State][happened]
	}
	(*waiting)(c).pass(err != nil)
	return (*Tried)(c), err
}

// arrive tries a call for the first time, or has it wait behind those that wait for the same room.
func (e *Engine) arrive(ctx context.Context, c *Call, since time.Duration) (event, error) {
	now := since
	if since == 0 {
		now = clock.Now()
	} else if e.Lines.Waiting() {
		c.Begin(ctx, since, since)
		if e.joins(ctx, c) {
			return lacks, nil
		}
	}
	return e.try(ctx, c, since, now)
}

// tryAgain tries a call that has waited, by what holds now.
func (e *Engine) tryAgain(ctx context.Context, c *Call, limits []rule.Limit, since time.Duration) (event, error) {
	w := (*waiting)(c)
	permits := w.permits()
	if !e.Switch.Enabled() {
		c.Clear()
	} else if err := e.Plan(ctx, c, limits); err != nil {
		c.Clear() // some of its charges may be planned, and none was tried
		w.leaveGone(permits)
		return fails, err
	}
	w.leaveGone(permits)
	return e.try(ctx, c, since, clock.Now())
}

// try has a call decided that began to try at an instant. Without charges nothing has to be.
func (e *Engine) try(ctx context.Context, c *Call, since, now time.Duration) (event, error) {
	if len(c.Charges) == 0 {
		return fits, nil
	}
	c.Begin(ctx, since, now)
	if !e.Known(ctx, c) {
		if err := e.Ask(ctx, c); err != nil {
			return fails, err
		}
	}
	admitted := terms.Admitted(c.Tries)
	if !admitted && c.Operation == Attempt {
		return fails, ledger.ErrNoRoom
	}
	t := (*Tried)(c)
	if admitted && t.isDue() {
		return reaches, nil
	}
	if admitted {
		return fits, nil
	}
	if w, ok := t.lack(); ok && t.join(w) {
		return lacks, nil
	}
	return refuses, nil
}

// tryDue tries what is charged at the turn of a call, which has come. For room of others than permits it
// needs a new place in the queue.
func (e *Engine) tryDue(ctx context.Context, c *Call, limits []rule.Limit, since time.Duration) (event, error) {
	if !e.beginTurn(ctx, c, limits, since) {
		return fits, nil
	}
	if Unsatisfiable(c.Charges) {
		refuseForever(c.Charges, c.Tries)
		return refuses, nil
	}
	if err := e.Ask(ctx, c); err != nil {
		return fails, err
	}
	if terms.Admitted(c.Tries) {
		return fits, nil
	}
	t := (*Tried)(c)
	w, ok := t.lack()
	if ok && !t.lends(w) {
		return lacks, nil
	}
	if ok && t.join(w) {
		return waits, nil
	}
	return refuses, nil
}

// AwaitTurn waits for the turn of an admitted call in queues, of which no other limit waits. The
// error is the context's, or [ErrClosed]: then the call has left its queue.
func (e *Engine) AwaitTurn(ctx context.Context, c *Tried, limits []rule.Limit) error {
	_, err := (*waiting)(c).awaitTurn(ctx, slices.Clone(limits))
	return err
}

// awaitTurn is AwaitTurn for a call that other limits wait for. It has no delay then.
func (e *Engine) awaitTurn(ctx context.Context, c *Call, limits []rule.Limit) (event, error) {
	happened, err := (*waiting)(c).awaitTurn(ctx, slices.Clone(limits))
	for i := range c.Tries {
		c.Tries[i].Delay = 0
	}
	return happened, err
}
