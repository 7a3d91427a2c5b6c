package judge

import "github.com/rategen/rategen/runtime"

// A historyCheck judges a log, a counter of buckets or a fixed window by its charges.
type historyCheck struct {
	History
	charges int
}

// CheckBy returns checks by histories.
func CheckBy(history func(*runtime.Rule) History) func(*runtime.Rule) Checker {
	return func(r *runtime.Rule) Checker { return &historyCheck{History: history(r)} }
}

func (c *historyCheck) next(r *Record) Fault {
	t, cost := c.at(r.Clock), int64(r.Cost)
	most, slack := c.most()
	if r.Admitted == 0 {
		// It is told to come back just when enough has left.
		fits, refused := c.refuses(c.charges, t, cost)
		late := int64(r.Wait) - (fits - r.Clock)
		if !refused {
			return Spurious
		}
		if r.Wait == 0 || late < 0 || late > slack {
			return Wrong
		}
		return 0
	}
	var f Fault
	if c.charge(t, cost) > most {
		f |= Over
	}
	if r.Wait != 0 || r.At < t || r.At > t+slack {
		f |= Wrong
	}
	c.charges++
	return f
}
