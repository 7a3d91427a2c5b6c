package replay

import "container/heap"

// An agenda is what is to be done at times: the earliest first, and what was added first at one
// time. The zero agenda is empty.
type agenda[T any] struct {
	all   entries[T]
	order uint64
}

type entry[T any] struct {
	at    int64
	order uint64
	do    T
}

func (a *agenda[T]) len() int { return len(a.all) }

// add adds what is to be done at a time.
func (a *agenda[T]) add(at int64, do T) {
	a.order++
	heap.Push(&a.all, entry[T]{at, a.order, do})
}

// due reports whether there is something to be done by a time.
func (a *agenda[T]) due(by int64) bool { return len(a.all) > 0 && a.all[0].at <= by }

// pop removes what is next, and its time. There is some.
func (a *agenda[T]) pop() (do T, at int64) {
	e := heap.Pop(&a.all).(entry[T])
	return e.do, e.at
}

// entries implement [heap.Interface].
type entries[T any] []entry[T]

func (e entries[T]) Len() int { return len(e) }
func (e entries[T]) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e entries[T]) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries[T]) Push(x any)   { *e = append(*e, x.(entry[T])) }
func (e *entries[T]) Pop() any {
	last := len(*e) - 1
	next := (*e)[last]
	(*e)[last] = entry[T]{}
	*e = (*e)[:last]
	return next
}
