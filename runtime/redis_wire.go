package runtime

import (
	"errors"
	"time"

	"github.com/rategen/rategen/lua"
)

// termNumbers is how many integers follow the algorithm of a term of take.lua,
// and runNumbers how many a run of limits has.
const (
	termNumbers = 5
	runNumbers  = 4
)

// A wire is the memory for one execution of take.lua: arguments that point
// into it, so that they cost no allocation each. It must not be used again
// before the command is through with it.
type wire struct {
	args    []any
	keys    []wireBytes
	names   []string // one for each of terms
	terms   []term
	numbers []int64  // of the runs of limits, then of the terms
	alone   bool     // the last run is of calls with one limit
	counts  [2]int64 // of keys and of terms
	op      string
	set     uint // of what the script must know, see lua.Take
}

// wireBytes are bytes that go-redis writes as they are.
type wireBytes []byte

// MarshalBinary implements encoding.BinaryMarshaler.
func (b *wireBytes) MarshalBinary() ([]byte, error) { return *b, nil }

// A term is what the charges of one rule have in common on the wire.
type term struct {
	rule *Rule
	max  int64
	wait time.Duration // of a queue
}

// load builds the arguments for calls, of which the i-th stands for times[i]
// alike ones. If routed, the client picks a node by the first key.
func (w *wire) load(op string, calls []Call, times []int64, routed bool) {
	w.op, w.terms, w.keys, w.numbers, w.alone, w.set = op, w.terms[:0], w.keys[:0], w.numbers[:0], false, 0
	for i := range calls {
		charges := calls[i].Charges
		for j := range charges {
			c := &charges[j]
			t := term{rule: c.Rule, max: c.Max}
			if c.Rule.queues() {
				t.wait = c.Wait
			}
			which := w.term(t)
			if j+1 < len(charges) {
				which = -which
			}
			third := c.At
			if op != "refund" {
				third = times[i]
			}
			w.keys = append(w.keys, c.Key)
			w.limit(which, c.Cost, third, op == "take" && len(charges) == 1)
		}
	}
	limits := len(w.numbers)
	w.names = w.names[:0]
	for _, t := range w.terms {
		algorithm, numbers := t.fields()
		w.set |= 1 << algorithm
		w.names = append(w.names, lua.Algorithms[algorithm])
		w.numbers = append(w.numbers, numbers[:]...)
	}
	w.counts = [2]int64{int64(len(w.keys)), int64(len(w.terms))}

	w.args = append(w.args[:0], nil, nil, &w.counts[0])
	for i := range w.keys {
		w.args = append(w.args, &w.keys[i])
	}
	if routed && len(w.keys) > 0 {
		w.args[3] = string(w.keys[0]) // the client looks at it to find the node
	}
	w.args = append(w.args, &w.op, &w.counts[1])
	for i := range w.names {
		w.args = append(w.args, &w.names[i])
		at := limits + i*termNumbers
		for j := range termNumbers {
			w.args = append(w.args, &w.numbers[at+j])
		}
	}
	for i := range limits {
		w.args = append(w.args, &w.numbers[i])
	}
}

// limit adds a limit to the runs: to the last one if that is alike, and both are
// the only limits of their calls.
func (w *wire) limit(which, cost, third int64, alone bool) {
	if n := len(w.numbers) - runNumbers; alone && w.alone &&
		w.numbers[n] == which && w.numbers[n+1] == cost && w.numbers[n+2] == third {
		w.numbers[n+3]++
		return
	}
	w.numbers, w.alone = append(w.numbers, which, cost, third, 1), alone
	if !alone {
		w.set |= lua.Several
	}
}

// term returns the number of t among the terms, from 1 on.
func (w *wire) term(t term) int64 {
	for i := range w.terms {
		if w.terms[i] == t {
			return int64(i + 1)
		}
	}
	w.terms = append(w.terms, t)
	return int64(len(w.terms))
}

// fields returns a term's algorithm, as an index of lua.Algorithms, and the
// numbers that take.lua wants of it.
func (t *term) fields() (algorithm int, numbers [termNumbers]int64) {
	r := t.rule
	var param, more, shadow int64
	switch r.Algorithm {
	case SlidingLog:
		param = r.Resolution.Microseconds()
		if r.Storage == List {
			algorithm = 1
		}
	case SlidingCounter:
		algorithm, param, more = 2, r.Buckets.width(r.Window), int64(r.Buckets.fine)
		if more > 0 {
			algorithm = 3
		}
	case FixedWindow:
		algorithm = 4
	default:
		algorithm, param, more = 5, r.capacity(t.max), -1
		if r.queues() {
			more = t.wait.Microseconds()
		}
	}
	if r.Mode == Shadow {
		shadow = 1
	}
	return algorithm, [...]int64{r.Window.Microseconds(), t.max, param, more, shadow}
}

var errReply = errors.New("the script's reply is not understood")

// A replyError is what the script says went wrong with one call.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks the error as one that Redis replied, as in go-redis.
func (replyError) RedisError() {}

// What a part of the reply of take.lua begins with, unless with how much is
// left of a limit.
const (
	replyFailed = -1
	replyLong   = -2
	longFields  = 7
)

// A reply is what take.lua replied, but for what was read of it already.
type reply struct {
	clock int64
	rest  []int64
}

func newReply(numbers []int64) (reply, error) {
	if len(numbers) == 0 {
		return reply{}, errReply
	}
	return reply{numbers[0], numbers[1:]}, nil
}

// read takes the part of a reply that is about one call, which stands for so
// many, off its front. It returns how many of them had room for their first
// limit.
func (c *Call) read(r *reply, times int64) (admitted int64, err error) {
	if len(r.rest) >= 2 && r.rest[0] == replyFailed {
		n := r.rest[1]
		if n < 0 || n > int64(len(r.rest))-2 {
			return 0, errReply
		}
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(r.rest[2+i])
		}
		r.rest = r.rest[2+n:]
		c.Err = replyError(text)
		return 0, nil
	}
	c.Err = nil
	for i := range c.Charges {
		allowed, err := c.Charges[i].read(r, times)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			admitted = allowed
		}
	}
	return admitted, nil
}

// read takes the part of a reply that is about one limit off its front.
func (c *Charge) read(r *reply, times int64) (allowed int64, err error) {
	n := r.rest
	switch {
	case len(n) >= 2 && n[0] >= 0:
		r.rest = n[2:]
		c.Result = Result{Allowed: true, Remaining: n[0], ResetAfter: micros(n[1]), At: r.clock}
		return times, nil
	case len(n) >= longFields && n[0] == replyLong:
		r.rest = n[longFields:]
		c.Result = Result{
			Allowed:    n[1] > 0,
			Remaining:  n[2],
			RetryAfter: micros(n[3]),
			ResetAfter: micros(n[4]),
			At:         n[5],
			Delay:      micros(n[6]),
		}
		return n[1], nil
	}
	return 0, errReply
}
