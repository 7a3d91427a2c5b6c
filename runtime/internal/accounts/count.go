package accounts

import (
	"context"
	"slices"

	"github.com/rategen/rategen/runtime/internal/terms"
)

// A Count is what a key has used of a period.
type Count struct {
	Key Key
	terms.Count
}

// Read returns the counts of keys: of the present period, and of those before it that ended after a
// time. The keys that could not be read come back with the error. Those that are billed to a rule of
// another program, see [Accounts.Shared], are left out.
func (as *Accounts) Read(ctx context.Context, keys []Key, since int64) (counts []Count, failed []Key, err error) {
	for part := range slices.Chunk(keys, batch) {
		var own []Key
		for _, k := range part {
			if lost := k.claim(ctx, as.Client); lost != nil {
				failed, err = append(failed, k), lost
			} else if !k.foreign() {
				own = append(own, k)
			}
		}
		if part = own; len(part) == 0 {
			continue
		}
		calls := make([]terms.Call, len(part))
		for i, k := range part {
			c := terms.Charge{}
			k.Charge(&c, []byte(k.Text), 1)
			calls[i].Charges = []terms.Charge{c}
		}
		if lost := as.Store.Peek(ctx, calls); lost != nil {
			failed, err = append(failed, part...), lost
			continue
		}
		for i := range calls {
			if lost := calls[i].Err; lost != nil {
				failed, err = append(failed, part[i]), lost
				continue
			}
			counts = appendCounts(counts, part[i], calls[i].Charges[0].Past, since)
		}
	}
	return counts, failed, err
}

// appendCounts appends the counts of a key that are known.
func appendCounts(counts []Count, k Key, past *terms.Past, since int64) []Count {
	if past == nil {
		return counts
	}
	all := append([]terms.Count{{Begin: past.Begin, End: past.End, Used: past.Used, Entry: past.Entry}}, past.Counts...)
	for i, c := range all {
		if c.Entry.Epoch == 0 || i > 0 && c.End <= since {
			continue
		}
		if c.Begin == 0 {
			c.Begin = k.Numbers.Period.Before(c.End)
		}
		counts = append(counts, Count{Key: k, Count: c})
	}
	return counts
}

// Restore adds to a key's present count what other epochs have used, if it is of an epoch, or there
// is none if that is 0. It reports whether it was, which it is once.
func (as *Accounts) Restore(ctx context.Context, k Key, epoch, used int64) (bool, error) {
	c := terms.Charge{}
	k.Charge(&c, []byte(k.Text), -used)
	c.At = max(epoch, terms.NoEpoch)
	calls := []terms.Call{{Charges: []terms.Charge{c}}}
	if err := as.Store.Renew(ctx, calls); err != nil {
		return false, err
	}
	return calls[0].Err == nil && calls[0].Charges[0].At != 0, calls[0].Err
}
