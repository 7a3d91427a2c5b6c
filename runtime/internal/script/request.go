package script

import (
	"slices"

	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// An Operation is one of those that take.lua documents.
type Operation string

const (
	Take   Operation = "take"
	Peek   Operation = "peek"
	Settle Operation = "settle"
	Renew  Operation = "renew"
	Hold   Operation = "hold"
)

// check stands before an operation of a script that looks first whether the server can count.
const check = "check "

// termNumbers is how many integers follow the algorithm of the terms on the wire.
const termNumbers = 5

// A request is the memory for the arguments of one execution of take.lua. The
// arguments point into it, so that they cost no allocation each: it must not be
// filled again before the command is done.
type request struct {
	args    []any
	keys    []wireBytes
	names   []string // one for each of terms
	terms   []terms.Terms
	numbers []int64  // of the runs of limits, then of the terms
	alone   bool     // the last run is of calls with one limit
	counts  [2]int64 // of keys and of terms
	op      string
	set     uint // what the script must know, see lua.Take
}

// wireBytes are bytes that go-redis writes as they are.
type wireBytes []byte

// MarshalBinary implements encoding.BinaryMarshaler.
func (b *wireBytes) MarshalBinary() ([]byte, error) { return *b, nil }

// fill builds the arguments for calls, of which the i-th stands for times[i]
// equal ones. If routed, the client picks a node by the first key.
func (r *request) fill(op Operation, calls []terms.Call, times []int64, routed bool) {
	r.terms, r.keys, r.numbers, r.alone, r.set = r.terms[:0], r.keys[:0], r.numbers[:0], false, 0
	for i := range calls {
		charges := calls[i].Charges
		for j := range charges {
			c := &charges[j]
			which := r.term(&c.Terms)
			if j+1 < len(charges) {
				which = -which
			}
			r.keys = append(r.keys, c.Key)
			alone := op != Peek && len(charges) == 1
			switch {
			case op == Settle && c.Cost < 0:
				r.run(alone, c.Charged, c.Mark, which, c.Cost, c.At)
			case op == Settle:
				r.run(alone, 0, 0, which, c.Cost, 0)
			case op == Renew || op == Hold:
				r.run(alone, which, c.Cost, c.At)
			default:
				r.run(alone, which, c.Cost, times[i])
			}
		}
	}
	switch op {
	case Settle:
		r.set = lua.Settle
	case Renew:
		r.set = lua.Renew
	case Hold:
		r.set = lua.Hold | lua.Block
	case Take:
		if len(r.keys) == 1 && times[0] == 1 {
			r.set = lua.One
		}
	}
	limits := len(r.numbers)
	r.names = r.names[:0]
	for i := range r.terms {
		t := &r.terms[i]
		script := scripts[t.Algorithm]
		r.set |= 1 << script
		r.names = append(r.names, lua.Algorithms[script])
		if t.Blocks() {
			r.set |= lua.Block
		}
		shadow := t.Block
		if t.Shadow {
			shadow = 1
		}
		r.numbers = append(r.numbers, t.Window, t.Max, t.Param, t.More, shadow)
	}
	r.counts = [2]int64{int64(len(r.keys)), int64(len(r.terms))}

	r.args = append(r.args[:0], nil, nil, &r.counts[0])
	for i := range r.keys {
		r.args = append(r.args, &r.keys[i])
	}
	if routed && len(r.keys) > 0 {
		r.args[3] = string(r.keys[0]) // the client looks at it to find the node
	}
	r.args = append(r.args, &r.op, &r.counts[1])
	for i := range r.names {
		r.args = append(r.args, &r.names[i])
		at := limits + i*termNumbers
		for j := range termNumbers {
			r.args = append(r.args, &r.numbers[at+j])
		}
	}
	for i := range limits {
		r.args = append(r.args, &r.numbers[i])
	}
}

// run adds a limit to the runs: to the last one if that is equal, and both are the
// only limits of their calls.
func (r *request) run(alone bool, numbers ...int64) {
	if n := len(r.numbers) - len(numbers) - 1; alone && r.alone && slices.Equal(r.numbers[n:n+len(numbers)], numbers) {
		r.numbers[n+len(numbers)]++
		return
	}
	r.numbers, r.alone = append(append(r.numbers, numbers...), 1), alone
	if !alone {
		r.set |= lua.Several
	}
}

// term returns the number of t among the terms, from 1 on.
func (r *request) term(t *terms.Terms) int64 {
	for i := range r.terms {
		if r.terms[i] == *t {
			return int64(i + 1)
		}
	}
	r.terms = append(r.terms, *t)
	return int64(len(r.terms))
}
