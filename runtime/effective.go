package runtime

// effective returns the rule and the max that are in force for a limit: its own,
// changed by the overrides in force and scaled by the load. It reports false if
// the rule is switched off. The error is [ErrInvalidLimit].
func (l *Limiter) effective(limit *Limit) (rule *Rule, max int64, on bool, err error) {
	rule, max = limit.rule, limit.max
	if l.overrides.Load() != nil {
		if rule, max, on = l.overridden(limit); !on {
			return rule, max, false, nil
		}
	}
	if err := rule.check(max, limit.cost); err != nil {
		return rule, max, true, err
	}
	if rule.Adaptive != nil && max > 0 {
		max = l.scaled(limit.rule, rule, max, limit.cost)
	}
	if limit.cost > MaxLogCost { // the least that any algorithm is bound to
		err = rule.checkCost(max, limit.cost)
	}
	return rule, max, true, err
}

// overridden returns the rule and the max of a limit with the overrides in force,
// and false if they switch the rule off.
func (l *Limiter) overridden(limit *Limit) (*Rule, int64, bool) {
	rule, max := limit.rule, limit.max
	o := l.overrides.Load()
	if o == nil || rule == nil {
		return rule, max, true
	}
	e := o.effective(l, rule)
	if e.keys != nil {
		e = e.keys.of(e, &limit.key)
	}
	if e.max != ownMax {
		max = e.max
	}
	return e.rule, max, !e.off
}
