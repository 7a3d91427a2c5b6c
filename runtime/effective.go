package runtime

// effective returns the rule and the max that hold for a limit just now: its
// own, changed by the overrides in force and scaled by how busy things are. It
// reports false if the rule is switched off. The error is [ErrInvalidLimit].
func (l *Limiter) effective(limit *Limit) (rule *Rule, most int64, on bool, err error) {
	rule, most = limit.rule, limit.max
	if l.overrides.Load() != nil {
		if rule, most, on = l.overridden(limit); !on {
			return rule, most, false, nil
		}
	}
	if err := rule.check(most, limit.cost); err != nil {
		return rule, most, true, err
	}
	if rule.Adaptive != nil && most > 0 {
		most = l.scaled(limit.rule, rule, most, limit.cost)
	}
	if limit.cost > MaxLogCost { // the least that any algorithm is bound to
		err = rule.checkCost(most, limit.cost)
	}
	return rule, most, true, err
}

// overridden returns the rule and the max that the overrides in force make of
// a limit's own, and false if they switch the rule off.
func (l *Limiter) overridden(limit *Limit) (*Rule, int64, bool) {
	rule, most := limit.rule, limit.max
	o := l.overrides.Load()
	if o == nil || rule == nil {
		return rule, most, true
	}
	of := o.of(l, rule)
	if of.max {
		most = of.rule.Max
	}
	return of.rule, most, !of.off
}
