package runtime

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
