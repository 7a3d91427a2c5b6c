package runtime

import (
	"errors"
	"time"

	"github.com/rategen/rategen/lua"
)

// Numbers of integers in the arguments and the reply of take.lua.
const (
	termNumbers = 6
	replyFields = 6
)

// A wire is the memory for one execution of take.lua: arguments that point
// into it, so that they cost no allocation each. It must not be used again
// before the command is through with it.
type wire struct {
	args    []any
	keys    []wireBytes
	names   []string // one for each of terms
	terms   []term
	numbers []int64
	counts  [2]int64 // of keys and of terms
	op      string
	set     uint // of the algorithms that are needed, see lua.Take
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
	w.op, w.terms, w.keys, w.numbers = op, w.terms[:0], w.keys[:0], w.numbers[:0]
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
			w.numbers = append(w.numbers, which, c.Cost, third)
		}
	}
	limits := len(w.numbers)
	w.names, w.set = w.names[:0], 0
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
	var param, fine, shadow int64
	wait := int64(-1)
	switch r.Algorithm {
	case SlidingLog:
		param = r.Resolution.Microseconds()
		if r.Storage == List {
			algorithm = 1
		}
	case SlidingCounter:
		algorithm, param, fine = 2, r.Buckets.width(r.Window), int64(r.Buckets.fine)
		if fine > 0 {
			algorithm = 3
		}
	case FixedWindow:
		algorithm = 4
	default:
		algorithm, param = 5, r.capacity(t.max)
		if r.queues() {
			wait = t.wait.Microseconds()
		}
	}
	if r.Mode == Shadow {
		shadow = 1
	}
	return algorithm, [...]int64{r.Window.Microseconds(), t.max, param, fine, wait, shadow}
}

var errReply = errors.New("the script's reply is not understood")

// A replyError is what the script says went wrong with one call.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks the error as one that Redis replied, as in go-redis.
func (replyError) RedisError() {}

// read takes the part of a reply that is about one call off its front.
func (c *Call) read(reply []int64) (rest []int64, err error) {
	if len(reply) >= 2 && reply[0] == -1 {
		n := reply[1]
		if n < 0 || int64(len(reply)) < 2+n {
			return nil, errReply
		}
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(reply[2+i])
		}
		c.Err = replyError(text)
		return reply[2+n:], nil
	}
	if len(reply) < replyFields*len(c.Charges) {
		return nil, errReply
	}
	c.Err = nil
	for i := range c.Charges {
		n := reply[i*replyFields:]
		c.Charges[i].Result = Result{
			Allowed:    n[0] > 0,
			Remaining:  n[1],
			RetryAfter: micros(n[2]),
			ResetAfter: micros(n[3]),
			At:         n[4],
			Delay:      micros(n[5]),
		}
	}
	return reply[replyFields*len(c.Charges):], nil
}
