package crossing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// A stream is a call that runs, and what is known of its meter.
type stream struct {
	*process
	*runtime.Meter
	first    *asked
	to       *listener
	accounts []account // by use
}

// An account is the newest charge of one limit.
type account struct {
	piece *asked // nil: nothing was charged
	use   int    // of piece
	left  int64  // in advance
	final bool   // it was settled when there was no room for a message
}

// meter charges a call while it runs, until it is refused or all is sent.
func (p *process) meter(ctx context.Context, to *listener, first *asked, number int64) {
	c := first.call
	var used []int64
	if c.Meter.Advance {
		used = make([]int64, len(first.uses))
		first.settled = whole(first)
	}
	p.note("in p%d: meter m%d c%d %s", p.number, first.number, first.number, words(used))
	s := &stream{process: p, Meter: p.limiter.Meter(ctx, first.d, used...), first: first, to: to}
	for i, u := range first.uses {
		left := s.Advance(i)
		if left != 0 && (left != u.Cost || !c.Meter.Advance) {
			s.history.contradict("a meter has what it was given", "%v: %d of %d in advance", u, left, u.Cost)
		}
		s.accounts = append(s.accounts, account{piece: first, use: i, left: left})
	}
	var err error
	for _, costs := range c.Meter.Messages {
		p.sleep(c.Meter.Every, number)
		if err = s.charge(costs); err != nil {
			break
		}
	}
	s.close(err)
}

// whole is how a piece is settled of which all is used.
func whole(a *asked) settled {
	s := settled{tried: true, start: a.start, end: a.end, over: a.end}
	for _, u := range a.uses {
		s.cost = append(s.cost, u.Cost)
	}
	return s
}

// charge charges a message, and notes what was taken for it, or was refused.
func (s *stream) charge(costs message) error {
	trip := &asked{process: s.number, call: s.first.call, more: true, uses: slices.Clone(s.first.uses), reported: make([]reported, len(s.first.uses)), portions: make([][]int64, len(s.first.uses))}
	charged := make([]int64, len(trip.uses))
	trip.start, trip.came, trip.turn = s.now(), s.moment(), s.work.Add(1)
	for i := range trip.uses {
		charged[i] = costs[trip.uses[i].Rule]
		trip.uses[i].Cost = charged[i]
		s.look(i)
	}
	s.to.asked = []*asked{trip}
	s.work.Add(1)
	err := s.Charge(charged...)
	s.work.Add(1)
	trip.end, trip.knows = s.now(), s.moment()
	if !trip.heard {
		trip.at = trip.end
	}
	for i, n := range charged {
		if len(trip.portions[i]) > 1 {
			trip.parts, trip.uses[i].Cost = true, n-s.accounts[i].left
			if err == nil {
				trip.uses[i].Cost = taken(trip.portions[i], n-s.accounts[i].left, n)
			}
		}
	}
	s.noteCharge(trip, charged, err)
	places := s.record(trip, err)
	if err != nil {
		waited := (trip.left() || errors.Is(err, runtime.ErrClosed)) && trip.end > trip.start // where there was no room
		for i := range s.accounts {
			a := &s.accounts[i]
			a.final = charged[i] > a.left && (errors.Is(err, runtime.ErrLimited) || waited) && s.program.Rules[s.first.uses[i].Rule].Reserve > 0
			s.look(i)
		}
		return err
	}
	for i, n := range charged {
		s.account(i, n, trip, places[i])
	}
	return nil
}

// taken returns how much of the portions of a message were taken and not given back: the last ones,
// which are the first try to have room for all that was lacking, with or without what was there in
// advance. If they are not, it returns all.
func taken(portions []int64, lack, all int64) (sum int64) {
	for _, n := range slices.Backward(portions) {
		if sum += n; sum == lack || sum == all {
			return sum
		}
	}
	return sum
}

// record adds a trip to the history, if there was one, with those of its uses that were asked
// for, and returns their places, or -1.
func (s *stream) record(trip *asked, err error) (places []int) {
	trip.d, trip.err = runtime.Decision{Allowed: err == nil}, err
	var limited *runtime.LimitedError
	if errors.As(err, &limited) {
		trip.d.Rule, trip.d.Limit, trip.d.Remaining = limited.Rule, limited.Limit, limited.Remaining
		trip.d.RetryAfter, trip.d.Blocked = limited.RetryAfter, limited.Blocked
	}
	all, told := trip.uses, trip.reported
	trip.uses, trip.reported = nil, nil
	for i, t := range told {
		if !t.yes && (err == nil || trip.heard) {
			places = append(places, -1)
			continue
		}
		if t.yes && (trip.d.Source == rule.SourceNone || s.program.Rules[all[i].Rule].Name == trip.d.Rule) {
			trip.d.Source = t.source
		}
		places = append(places, len(trip.uses))
		trip.uses, trip.reported = append(trip.uses, all[i]), append(trip.reported, t)
	}
	if err == nil {
		trip.settled = whole(trip)
	}
	if len(trip.uses) > 0 {
		s.history.add(trip)
	}
	return places
}

// account notes what is left of a limit when n units of it were charged.
func (s *stream) account(i int, n int64, trip *asked, place int) {
	a, after := &s.accounts[i], s.Advance(i)
	before := a.left
	if place < 0 && n <= before && after == before-n {
		a.left = after
		return
	}
	if place < 0 && n <= before && after == 0 && (n == 0 || a.piece == nil || a.piece.reported[a.use].source == rule.SourceLocal) {
		s.drop(i, before-n, s.soon()) // it has waited for too long, or is local
		a.left = 0
		return
	}
	if place < 0 { // nobody was asked
		s.drop(i, before, endless)
		*a = account{left: after}
		s.history.mu.Lock()
		defer s.history.mu.Unlock()
		s.history.unasked = append(s.history.unasked, &asked{number: s.first.number, uses: s.first.uses[i : i+1], start: trip.start, end: trip.end})
		return
	}
	took := trip.uses[place].Cost
	rest := took - n
	if !trip.charged(place) || trip.reported[place].source == rule.SourceLocal {
		s.drop(i, before, endless)
		trip.settled.cost[place], trip.settled.end, trip.settled.over = min(took, max(0, n-before)), endless, endless
		*a = account{left: after}
		return
	}
	if after == rest+before { // which is 0 mostly
		s.drop(i, 0, s.soon())
	} else if after == rest {
		s.drop(i, before, s.soon())
	} else {
		s.history.contradict("a meter uses what it has taken", "#%d: %d of %v were charged of %d in advance and %d more, and %d are left", s.first.number, n, s.first.uses[i], before, took, after)
	}
	*a = account{piece: trip, use: place, left: after}
}

// look notes that what was in advance was given back, if it was.
func (s *stream) look(i int) {
	if a, left := &s.accounts[i], s.Advance(i); left == 0 && a.left > 0 {
		s.drop(i, a.left, s.soon())
		a.left = 0
	}
}

// drop notes that units of a charge are given back by a time, and the others used.
func (s *stream) drop(i int, units int64, by time.Duration) {
	if a := &s.accounts[i]; a.piece != nil && (a.piece != s.first || s.first.call.Meter.Advance) {
		if settled := &a.piece.settled; settled.cost[a.use] == a.piece.uses[a.use].Cost {
			settled.cost[a.use] -= units
			settled.end, settled.over, settled.turn = max(settled.end, by), s.now(), s.work.Add(1)
		}
	}
}

// soon is when something is settled that is settled now.
func (s *stream) soon() time.Duration {
	if s.still() && memorized(s.program) {
		return s.now()
	}
	return endless
}

// close ends a meter, whose last charge has failed or not.
func (s *stream) close(err error) {
	first, ctx := s.first, context.Background()
	ended := runtime.ErrSettled
	if s.Err() != nil {
		if ended = s.Err(); ended != err {
			s.history.contradict("a meter ends by what refuses a message", "#%d: %v, and %v", first.number, err, ended)
		}
	}
	settled := settled{tried: true, start: s.now(), end: endless, over: endless}
	costs := s.costs(first)
	for i, u := range first.uses {
		s.look(i)
		a, cost := &s.accounts[i], costs[i]
		if s.program.Rules[u.Rule].Algorithm == runtime.Concurrency {
			cost = 0
		} else if a.piece != first {
			cost = -1
		} else if a.final {
			cost = u.Cost
		}
		settled.cost = append(settled.cost, cost)
	}
	s.work.Add(1)
	s.process.note("in p%d: close m%d %s", s.number, first.number, words(costs))
	s.Close(costs...)
	for i := range s.accounts {
		s.look(i)
	}
	settled.end, settled.over, settled.turn = s.soon(), s.now(), s.work.Add(1)
	if !first.call.Meter.Advance {
		first.settled = settled
	}
	s.work.Add(1)
	if again := s.Charge(1); again != ended {
		s.history.contradict("a meter that is closed charges nothing", "#%d: %v, want %v", first.number, again, ended)
	}
	if charged := slices.ContainsFunc(indexes(first.uses), func(i int) bool { return first.charged(i) && costs[i] >= 0 }); first.call.Wrong == twice && charged {
		if again := s.limiter.Settle(ctx, first.d, costs...); !errors.Is(again, runtime.ErrSettled) {
			s.history.contradict("a decision is settled once", "#%d, which is metered: %v", first.number, again)
		}
	}
}
