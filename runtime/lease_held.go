package runtime

// Leased returns how many units this process holds of rules with a [Rule.Lease], by the
// name of the rule: they are charged, and no call has used them yet. What nobody uses
// before its time is over is given back.
func (l *Limiter) Leased() map[string]int64 {
	units := map[string]int64{}
	if l == nil || l.leases == nil {
		return units
	}
	sets, now := l.leases.table.sets.Load(), instant()
	for s := 0; sets != nil && s < len(sets); s++ {
		for i := range sets[s] {
			e := sets[s][i].Load()
			if e == nil {
				continue
			}
			for g := e.current.Load(); g != nil; g = g.next.Load() {
				if now < g.end {
					units[e.rule.Name] += max(0, g.left.Load())
				}
			}
		}
	}
	return units
}
