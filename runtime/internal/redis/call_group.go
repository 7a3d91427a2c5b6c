package redis

import (
	"bytes"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/runtime/internal/recall"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// A groupKey is what the calls of a group have in common.
type groupKey struct {
	op   script.Operation
	slot int // of all keys; 0 if that does not matter
}

// order is the order in which a server does the operations of a batch.
var order = map[script.Operation]int{script.Renew: 0, script.Settle: 1, script.Take: 2, script.Peek: 3, script.Hold: 4}

// A group is the part of a batch that does one operation with keys in one slot. One
// script does it, unless it had to be split.
type group struct {
	groupKey
	waiters  []*waiter
	calls    []terms.Call     // to execute
	times    []int64          // for how many callers each of calls stands
	outcomes []script.Outcome // of each of calls
	origin   []place          // of each caller's call, in order: its place in calls
	divided  bool             // some of calls are of keys that shares divide

	executions []*script.Execution
	spare      []*script.Execution
}

// A place says which of a group's calls a caller's call is merged into, and how
// many callers of that come before it.
type place struct {
	call  int
	index int64
}

func (g *group) clear() {
	clear(g.waiters)
	clear(g.calls)
	g.waiters, g.calls, g.times, g.origin, g.divided = g.waiters[:0], g.calls[:0], g.times[:0], g.origin[:0], false
	for _, e := range g.executions {
		e.Clear()
	}
	g.spare = append(g.spare, g.executions...)
	g.executions = g.executions[:0]
}

// add adds a waiter and returns how much work it is, or false if that is more
// than there is room for. A call that takes is merged into the last one on its key if both
// are to the same one limit at the same cost: so calls on a key, or of a tenant of one, stay in the
// order of their arrival.
func (g *group) add(w *waiter, last *index, room int64) (work int64, ok bool) {
	if len(w.charges) == 1 {
		return g.addOne(w, last, room)
	}
	if w.work > room {
		return 0, false
	}
	for _, call := range w.Calls {
		for j := range call.Charges {
			c := &call.Charges[j]
			previous := last.set(last.entry(g, c), g, c, len(g.calls))
			if j == 0 {
				call.Previous = previous
			}
		}
		g.append(call)
	}
	g.waiters = append(g.waiters, w)
	return w.work, true
}

func (g *group) addOne(w *waiter, last *index, room int64) (work int64, ok bool) {
	charge, work := &w.charges[0], w.work
	entry := last.entry(g, charge)
	merged := g.op == script.Take && last.holds(entry) && equal(&g.calls[entry.call], charge)
	if merged {
		work -= terms.Work
	}
	if work > room {
		return 0, false
	}
	if merged {
		g.origin = append(g.origin, place{int(entry.call), g.times[entry.call]})
		g.times[entry.call]++
	} else {
		call := w.Calls[0]
		call.Previous = last.set(entry, g, charge, len(g.calls))
		g.append(call)
	}
	g.waiters = append(g.waiters, w)
	return work, true
}

func (g *group) append(call terms.Call) {
	g.origin = append(g.origin, place{len(g.calls), 0})
	g.calls = append(g.calls, call)
	g.times = append(g.times, 1)
	g.divided = g.divided || len(call.Charges) == 1 && call.Charges[0].Weight != 0
}

// gather puts calls on a key that shares divide next to each other, so that the script reads and writes it
// once for all, where nothing but such calls stands between them. Those on a key stay in their order.
func (g *group) gather() {
	key := func(i int) []byte {
		if c := g.calls[i].Charges; len(c) == 1 && c[0].Weight != 0 {
			return c[0].Key
		}
		return nil
	}
	var from []int // where the calls have been
	for begin, end := 0, 0; begin < len(g.calls); begin = max(begin+1, end) {
		mixed := false
		for end = begin; end < len(g.calls) && key(end) != nil; end++ {
			mixed = mixed || !bytes.Equal(key(begin), key(end))
		}
		if mixed {
			for i := len(from); i < len(g.calls); i++ {
				from = append(from, i)
			}
			slices.SortStableFunc(from[begin:end], func(i, j int) int { return bytes.Compare(key(i), key(j)) })
		}
	}
	if from == nil {
		return
	}
	calls, times, to := slices.Clone(g.calls), slices.Clone(g.times), make([]int, len(from))
	for i, was := range from {
		g.calls[i], g.times[i], to[was] = calls[was], times[was], i
	}
	for i := range g.origin {
		g.origin[i].call = to[g.origin[i].call]
	}
}

// equal reports whether a call can be one charge to Redis with a charge.
func equal(call *terms.Call, c *terms.Charge) bool {
	if len(call.Charges) != 1 {
		return false
	}
	x := &call.Charges[0]
	return x.Terms == c.Terms && x.Cost == c.Cost && x.Algorithm.Is(algorithm.Merges) && x.Reserve == 0 &&
		(!x.Algorithm.Is(algorithm.Divides) || x.Weight == c.Weight && x.Cost <= x.Param-x.More) && // dearer ones leave no even rest
		bytes.Equal(x.Key, c.Key) && bytes.Equal(x.Tenant, c.Tenant)
}

// fill prepares one script for all calls, for a server whose clock shows now.
func (g *group) fill(now int64) {
	if g.divided && g.op == script.Take {
		g.gather()
	}
	for len(g.outcomes) < len(g.calls) {
		g.outcomes = append(g.outcomes, script.Outcome{})
	}
	g.execution().Fill(g.op, g.calls, g.times, g.outcomes[:len(g.calls)], now)
}

func (g *group) execution() *script.Execution {
	var e *script.Execution
	if n := len(g.spare); n > 0 {
		e, g.spare = g.spare[n-1], g.spare[:n-1]
	} else {
		e = new(script.Execution)
	}
	g.executions = append(g.executions, e)
	return e
}

// split moves the calls of an execution from the i-th on to a new one.
func (g *group) split(e *script.Execution, i int) *script.Execution {
	part := g.execution()
	e.Split(part, i)
	return part
}

// err returns why nobody in the group got an answer, or nil.
func (g *group) err() error {
	if len(g.executions) == 0 {
		return nil // all have been told
	}
	for _, e := range g.executions {
		if e.Err == nil {
			return nil
		}
	}
	return g.executions[0].Err
}

// learn has a memory learn what the script has refused, which was sent at an instant and
// answered by another one, and reports whether that was anything.
func (g *group) learn(m *recall.Memory, sent, answered time.Duration) (refused bool) {
	for i := range g.calls {
		call := &g.calls[i]
		if call.Err != nil {
			continue
		}
		if g.outcomes[i].Admitted < g.times[i] && g.times[i] > 1 {
			call.Charges[0].Allowed = false // the last of them was not; share tells them apart
		}
		refused = m.Learn(call, sent, answered) || refused
	}
	return refused
}

// finish tells everybody in the group what became of their calls. It returns
// what is to be given back for those who have given up.
func (g *group) finish(b *batcher) (unwanted []terms.Call) {
	origin, err := g.origin, g.err()
	for _, w := range g.waiters {
		for i := range w.Calls {
			g.share(&w.Calls[i], origin[i])
		}
		origin = origin[len(w.Calls):]
		returned := w.returned != nil // read before its caller is told, who uses it again
		told := w.finish(err)
		if !told && err == nil {
			unwanted = w.unwanted(unwanted)
		} else if told && returned {
			b.end(w, err)
		}
	}
	return unwanted
}

// share fills in the results of a caller's call. If it was merged with others,
// those that came first were admitted.
func (g *group) share(call *terms.Call, p place) {
	call.Err = g.calls[p.call].Err
	if g.times[p.call] == 1 || call.Err != nil {
		return // the results are in place: calls shares them with the waiter
	}
	// The charge of g.calls is the first caller's, who may have gone by now.
	outcome, c := &g.outcomes[p.call], &call.Charges[0]
	c.Result = outcome.Result
	ahead := outcome.Admitted - 1 - p.index
	if ahead >= 0 {
		if ahead > 0 || c.Remaining > 0 {
			c.MoreAfter = 0
		} else {
			c.MoreAfter = max(c.MoreAfter, c.RetryAfter) // of the next one, which was refused
		}
		c.Allowed, c.Blocked, c.RetryAfter = true, false, 0
		c.Remaining += ahead * c.Cost
		if c.Is(algorithm.Lends) {
			c.At -= ahead * c.Cost // each has permits of its own
		}
	} else {
		c.Allowed, c.At = false, 0
		if c.Blocked {
			c.Remaining = 0
		}
	}
}
