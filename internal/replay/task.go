package replay

// A task is what a simulation does at a time.
type task struct {
	renews     *held
	ends       *held
	cost       int64 // at which it is settled
	tries      *job
	simulation int
	since      int64 // when its call came
}

func (sim *simulation) plan(at int64, t task) {
	if sim.agenda.len() >= maxHeld {
		sim.full = true
		return
	}
	if t.tries != nil {
		sim.waiting++
	}
	sim.agenda.add(at, t)
}

// advance does what is due before a time.
func (sim *simulation) advance(until int64) error {
	for sim.agenda.due(until) {
		t, at := sim.agenda.pop()
		sim.decider.Now = max(sim.decider.Now, at)
		if t.renews != nil {
			sim.renew(t.renews)
		} else if t.ends != nil {
			sim.end(t.ends, t.cost)
		} else if t.tries != nil {
			sim.waiting--
			if err := sim.run.try(sim, t.tries, t.simulation, t.since); err != nil {
				return err
			}
			if sim.waiting == 0 {
				clear(sim.early)
			}
		}
	}
	return nil
}
