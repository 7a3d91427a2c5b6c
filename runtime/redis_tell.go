package runtime

// tell tells everybody at a stop of a trip what became of their calls. What was
// denied is known to all before: whoever has been told so finds that out without
// Redis.
func (t *terminal) tell(trip *trip, s *stop) {
	if d := t.store.denials; d != nil && s.err == nil && trip.op == "take" && s.learn(d, trip.left) {
		d.learned()
	}
	s.tell()
}

// overtake tells those of a trip that is about to leave whose calls are denied
// by what others were told since they came. Redis need not say so once more. It
// returns how many they are.
func (t *terminal) overtake(trip *trip) int {
	d := t.store.denials
	if d == nil {
		return 0
	}
	trip.overtaken = trip.overtaken[:0]
	for _, ticket := range trip.tickets {
		if ticket.op == "take" && ticket.state.Load() == open && d.overtake(ticket.calls, ticket.came) {
			trip.overtaken = append(trip.overtaken, ticket)
		}
	}
	if len(trip.overtaken) == 0 {
		return 0
	}
	t.disembarked(trip, trip.overtaken)
	for i, ticket := range trip.overtaken {
		pass := ticket.pass // the ticket is its caller's once that is told
		if ticket.tell(nil, false) {
			t.breaker.dropped(pass)
		}
		trip.overtaken[i] = nil
	}
	return len(trip.overtaken)
}

// disembarked takes tickets off a trip, which are in the order that they have
// there. Only then may their callers be told, who use them again.
func (t *terminal) disembarked(trip *trip, tickets []*ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stay := trip.tickets[:0]
	for _, ticket := range trip.tickets {
		if len(tickets) > 0 && ticket == tickets[0] {
			tickets = tickets[1:]
			continue
		}
		stay = append(stay, ticket)
	}
	clear(trip.tickets[len(stay):])
	trip.tickets = stay
}
