package concrete

type S[T ~string] struct{}

// want +2 `key: #k is of type .*T, which has no text`
//
//ratelimit:key=#id,#k max=5
func (s *S[K]) Get(id string, k []K) error { return nil }

// want +2 `method unexported of S is unexported`
//
//ratelimit:key=#id
func (s *S[K]) unexported(id string) error { return nil }
