package runtime

// Leased returns how many units this process holds of rules with a [Rule.Lease], by the
// name of the rule: they are charged, and no call has used them yet. What nobody uses
// before its time is over is given back.
func (l *Limiter) Leased() map[string]int64 {
	if l.engine.Leases == nil {
		return map[string]int64{}
	}
	return l.engine.Leases.Units()
}
