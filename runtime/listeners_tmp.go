package runtime

import "sync/atomic"

type listeners struct{ joined atomic.Pointer[events] }

func (l *listeners) Load() *events              { return l.joined.Load() }
func (l *listeners) add(e *events) (first bool) { return l.joined.Swap(e) == nil }
func (l *listeners) remove(e *events)           {}
