package script_test

import "github.com/rategen/rategen/internal/algorithm"

// byShares is a test of the suite, and byDivision one of the model's rules.
func byShares(test string) string { return bySuite("shares", test) }

const byDivision = "^TestModel$/^shares_quarter$"

// shareMutations are faults in what divides a bucket among tenants.
var shareMutations = []scriptMutation{
	{"shares: no headroom", algorithm.Shares, "filled <= most - passes", "filled <= most", byShares("divides")},
	{"shares: the headroom is nobody's", algorithm.Shares, "if behind > 0 then", "if false then", byShares("divides")},
	{"shares: one for one, however far behind", algorithm.Shares, "behind * math.max(1, 2 * tokens / heaviest)", "behind", byDivision},
	{"shares: weights are one", algorithm.Shares, "weight * 1000000, nil", "1000000, nil", byShares("weights")},
	{"shares: never decays", algorithm.Shares, "base + (at - start) / window, weight", "base, weight", byDivision},
	{"shares: refunds leave what was used", algorithm.Shares, "used = used - math.min(decayed, back)", "used = used", byDivision},
	{"shares: another window goes on", algorithm.Shares, "if of ~= window or since + window <= clock then", "if since + window <= clock then", "^TestSharesOfAnotherWindow$"},
	{"shares: a clock far behind", algorithm.Shares, "if since > clock + window then", "if false then", byShares("clock-steps-far-back")},
	{"shares: who is behind is not told", algorithm.Shares, "level > most and 1 or nil", "level > most and nil", byDivision},
	{"shares: a block is of the key", algorithm.Shares, `'\4' .. tenant)`, `'\4')`, byShares("block")},
	{"shares: a tenant too many", algorithm.Shares, ">= 100000", ">= 100002", "^TestManyTenants$"},
	{"shares: what is nothing stays", algorithm.Shares, "top - 14", "top - 1000", "^TestManyTenants$"},
	{"shares: no expiry", algorithm.Shares, "call('PEXPIRE', key, lifetime(expires))", "", "^TestManyTenants$"},
}
