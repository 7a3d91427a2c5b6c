package script

import "github.com/rategen/rategen/runtime/internal/terms"

// readShares decodes the last part of a reply, about keys over a share, and tells their rules: this
// one time, whoever still waits for the call.
func (r *reply) readShares(calls []terms.Call) error {
	const each = 5
	for ; len(r.numbers) > 0; r.numbers = r.numbers[each:] {
		n := r.numbers
		if len(n) < each || n[1] != replyTold || n[2] < 1 || n[2] > 3 || n[3] < 0 || n[4] < 0 {
			return ErrReply
		}
		c := nthCharge(calls, n[0]-1)
		if c == nil {
			return ErrReply
		}
		c.Tell(terms.Shares(n[2]), n[3], n[4])
	}
	return nil
}

// nthCharge returns one of the charges of calls, or nil.
func nthCharge(calls []terms.Call, n int64) *terms.Charge {
	for i := range calls {
		charges := calls[i].Charges
		if n >= 0 && n < int64(len(charges)) {
			return &charges[n]
		}
		n -= int64(len(charges))
	}
	return nil
}
