package concrete

// want +2 `key: method Put has no parameter #idd`
//
//ratelimit:key=#idd max=5
func (s *S[K]) Put(id string, k K) error { return nil }
