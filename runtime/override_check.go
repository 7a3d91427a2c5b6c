package runtime

import "fmt"

// Check returns an error that names the first of the overrides that no rule could
// have, or that one of rules does not allow: what a limiter with those rules would
// reject. It is for tools that write overrides.
func (o Overrides) Check(rules ...*Rule) error {
	s := new(overrideSet)
	keys, err := s.keysOf(o)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return err
	}
	s = &overrideSet{Overrides: o, keys: keys}
	for _, r := range rules {
		if err := r.checkPrefix(); err != nil {
			return fmt.Errorf("check overrides: %w", err)
		}
		if _, err := s.apply(r); err != nil {
			return err
		}
	}
	return nil
}
