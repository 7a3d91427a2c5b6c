package script

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rule"
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

// checkPrefix stands before an operation of a script that looks first whether the server can count.
const checkPrefix = "check "

// How many integers follow the algorithm of the terms on the wire, also if there are any of
// reservations, and if there are any of former periods or of shares.
const (
	termNumbers     = 5
	reservedNumbers = 7
	pastNumbers     = 10
)

// scripts are the indices of algorithms in lua.Algorithms, returns says which of them have
// more numbers, and divides which are for tenants.
var scripts, returns, divides = func() (indices [algorithm.Algorithms]int, returns, divides [algorithm.Algorithms]bool) {
	for a := range algorithm.Algorithms {
		name := a.Row().Script
		if indices[a] = slices.Index(lua.Algorithms[:], name); indices[a] < 0 {
			panic(fmt.Sprintf("script: algorithm %d has no script %q", a, name))
		}
		returns[a], divides[a] = name == algorithm.Returns, a.Is(algorithm.Divides)
	}
	return indices, returns, divides
}()

// A request is the memory for the arguments of one execution of take.lua. The
// arguments point into it, so that they cost no allocation each: it must not be
// filled again before the command is done.
type request struct {
	args        []any
	keys        []wireBytes
	names       []string // one for each of terms
	terms       []terms.Terms
	numbers     []int64   // of the runs of limits, then of the terms
	lastSingle  bool      // the last run is of calls with one limit
	firstSingle int       // the first of these
	tenancies   []tenancy // of keys up to the last one that has any
	counts      [2]int64  // of keys and of terms
	op          string
	set         uint // what the script must know, see lua.Take
}

// A tenancy says for whom the call of a key is.
type tenancy struct {
	weight int64
	tenant wireBytes
}

// wireBytes are bytes that clients write as they are.
type wireBytes []byte

func (b *wireBytes) MarshalBinary() ([]byte, error) { return *b, nil }

// fill builds the arguments for calls, of which the i-th stands for times[i]
// equal ones, for a server whose clock is expected to show now.
func (r *request) fill(op Operation, calls []terms.Call, times []int64, now int64) {
	r.terms, r.keys, r.numbers, r.tenancies, r.lastSingle, r.set = r.terms[:0], r.keys[:0], r.numbers[:0], r.tenancies[:0], false, 0
	r.addLimits(op, calls, times)
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
	r.arrange(limits, r.addTerms(now))
}

// addLimits adds what is asked about each limit, in runs.
func (r *request) addLimits(op Operation, calls []terms.Call, times []int64) {
	for i := range calls {
		charges := calls[i].Charges
		for j := range charges {
			c := &charges[j]
			which := r.term(&c.Terms)
			if j+1 < len(charges) {
				which = -which
			}
			r.keys = append(r.keys, c.Key)
			if divides[c.Algorithm] {
				r.tenancy(op, c)
			}
			alone, again := op != Peek && len(charges) == 1, calls[i].Previous > r.firstSingle
			switch {
			case op == Settle && (c.Cost < 0 || returns[c.Algorithm]):
				r.run(i, alone, again, c.Charged, c.Mark, which, c.Cost, c.At)
			case op == Settle:
				forgives := int64(0)
				if c.Debt == rule.DebtForgive {
					forgives = 1
				}
				r.run(i, alone, again, 0, forgives, which, c.Cost, 0)
			case op == Renew || op == Hold:
				r.run(i, alone, again, which, c.Cost, c.At)
			case c.Deferred && c.Is(algorithm.Lends):
				r.run(i, alone, again, which, c.Cost, -1)
			case c.Deferred:
				r.run(i, alone, again, which, c.Cost, 0)
			default:
				r.run(i, alone, again, which, c.Cost, times[i])
			}
		}
	}
}

// addTerms adds the numbers of all terms, and what the script must know for them. It returns how many
// each has.
func (r *request) addTerms(now int64) (size int) {
	r.names = r.names[:0]
	size = termNumbers
	for i := range r.terms {
		t := &r.terms[i]
		if t.Keep > 0 || t.Tells > 0 {
			size = pastNumbers
			r.set |= lua.Past
		} else if returns[t.Algorithm] {
			size = max(size, reservedNumbers)
		}
	}
	for i := range r.terms {
		t := r.terms[i]
		t.SetClock(now)
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
		if size >= reservedNumbers {
			r.numbers = append(r.numbers, t.Reserve, max(0, int64(t.Debt)-1)) // 1: it is carried, 2: forgiven
		}
		if size == pastNumbers {
			keep := int64(t.Keep)
			if t.Ledger {
				keep *= -2
			}
			r.numbers = append(r.numbers, keep, t.Kept(), t.Tells)
		}
	}
	return size
}

// arrange has the arguments point to what was added: so many numbers of limits, and so many of each of
// the terms.
func (r *request) arrange(limits, size int) {
	r.counts = [2]int64{int64(len(r.keys)), int64(len(r.terms))}
	r.args = append(r.args[:0], nil, nil, &r.counts[0])
	for i := range r.keys {
		r.args = append(r.args, &r.keys[i])
	}
	r.args = append(r.args, &r.op)
	if r.set&lua.Operations == lua.One { // see take_one.lua
		for i := range r.numbers[limits:] {
			r.args = append(r.args, &r.numbers[limits+i])
		}
		r.args = append(r.args, &r.numbers[1]) // the cost
		if len(r.tenancies) > 0 {
			r.args = append(r.args, &r.tenancies[0].weight, &r.tenancies[0].tenant)
		}
		return
	}
	r.args = append(r.args, &r.counts[1])
	for i := range r.names {
		r.args = append(r.args, &r.names[i])
		at := limits + i*size
		for j := range size {
			r.args = append(r.args, &r.numbers[at+j])
		}
	}
	for i := range limits {
		r.args = append(r.args, &r.numbers[i])
	}
	if len(r.tenancies) == 0 {
		return
	}
	r.pad(len(r.keys))
	for i := range r.tenancies {
		r.args = append(r.args, &r.tenancies[i].weight)
	}
	for i := range r.tenancies {
		r.args = append(r.args, &r.tenancies[i].tenant)
	}
}

// tenancy notes for whom the call of the last key is. It is in a run with the one before only if that has the
// same key.
func (r *request) tenancy(op Operation, c *terms.Charge) {
	n := len(r.keys)
	if n > 1 && !bytes.Equal(r.keys[n-2], c.Key) {
		r.lastSingle = false
	}
	tenant := wireBytes(c.Tenant)
	if op == Hold {
		tenant = wireBytes(terms.Everybody)
	}
	r.pad(n - 1)
	r.tenancies = append(r.tenancies, tenancy{max(1, c.Weight), tenant})
}

// pad has the first n keys have a tenancy, be it nobody's.
func (r *request) pad(n int) {
	for len(r.tenancies) < n {
		r.tenancies = append(r.tenancies, tenancy{weight: 1})
	}
}

// run adds a limit of the i-th call to the runs: to the last one if that is equal, and both are
// the only limits of their calls. Again says that a call of that run has the key. The keys of a
// run differ, unless its second one is the first one again: then any may come again, and their
// number is below 0.
func (r *request) run(i int, alone, again bool, numbers ...int64) {
	if n := len(r.numbers) - len(numbers) - 1; alone && r.lastSingle &&
		slices.Equal(r.numbers[n:n+len(numbers)], numbers) {
		keys := &r.numbers[n+len(numbers)]
		if *keys < 0 {
			*keys--
			return
		}
		if !again {
			*keys++
			return
		}
		if *keys == 1 {
			*keys = -2
			return
		}
	}
	r.numbers, r.firstSingle, r.lastSingle = append(append(r.numbers, numbers...), 1), i, alone
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
