package runtime

// effective returns the rule and the max that hold for a limit just now: its
// own, changed by the overrides in force and scaled by how busy things are. It
// reports false if the rule is switched off.
func (l *Limiter) effective(limit *Limit) (*Rule, int64, bool) {
	rule, most := limit.rule, limit.max
	if o := l.overrides.Load(); o != nil {
		of := o.of(l, rule)
		if of.off {
			return rule, most, false
		}
		if of.max {
			most = of.rule.Max
		}
		rule = of.rule
	}
	if rule.Adaptive != nil && most > 0 {
		most = l.scaled(limit.rule, rule, most, limit.cost)
	}
	return rule, most, true
}
