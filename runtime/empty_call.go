package runtime

import "context"

// hasEmpty reports whether a call has no charges. A store admits such a call.
// The engine of a [RedisStore] relies on a first charge, so the store leaves
// these calls out before they get there.
func hasEmpty(calls []Call) bool {
	for i := range calls {
		if len(calls[i].Charges) == 0 {
			return true
		}
	}
	return false
}

// withoutEmpty has the calls with charges decided, and none of the others.
func withoutEmpty(ctx context.Context, calls []Call, decide func(context.Context, []Call) error) error {
	var charged []Call
	var places []int
	for i := range calls {
		if calls[i].Err = nil; len(calls[i].Charges) > 0 {
			charged, places = append(charged, calls[i]), append(places, i)
		}
	}
	if len(charged) == 0 {
		return nil
	}
	err := decide(ctx, charged)
	for k, i := range places {
		calls[i].Err = charged[k].Err
	}
	return err
}
