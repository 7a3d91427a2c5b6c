package runtime

import "context"

// Failures returns how many calls the store has not decided since it was made,
// by why. Classes that none is of are left out.
func (s *RedisStore) Failures() map[ErrorClass]int64 {
	counts := make(map[ErrorClass]int64)
	for class := range s.failures {
		if n := s.failures[class].Load(); n > 0 {
			counts[ErrorClass(class)] = n
		}
	}
	return counts
}

// count takes note of n calls that were not decided, if err is not nil. That
// their caller gave up is nobody's failure.
func (s *RedisStore) count(err error, n int) {
	if err != nil && err != context.Canceled && err != context.DeadlineExceeded {
		class := ClassOf(err)
		s.failures[class].Add(int64(n))
		s.topology.doubt(class)
	}
}

// answered tells the breaker what came of asking Redis until a context of
// withTimeout ended. An error of the context itself is the caller's.
func (s *RedisStore) answered(p pass, err error) {
	if err == context.Canceled || err == context.DeadlineExceeded {
		s.terminal.breaker.dropped(p)
		return
	}
	s.terminal.breaker.learn(p, err)
}
