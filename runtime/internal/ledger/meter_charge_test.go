package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/internal/ledger"
)

var (
	errClosed  = errors.New("closed")
	errInvalid = errors.New("invalid")
)

// A limited is a limit of a source.
type limited struct {
	begun, advance int64 // what the call was charged when it began, and what of it is in advance
	room           int64
	most           int64
	free           bool // refuses nobody, and does not count what it has no room for
	off            bool // counts nothing, and refuses nobody
	local, lapses  bool // its charges
}

// A source tells what it is asked, and takes a while for it.
type source struct {
	mu     sync.Mutex
	limits []limited
	takes  time.Duration
	fails  error
	end    context.CancelFunc // of the call, that ends while something is taken; or nil
	at     int64
	told   []string
}

// lock locks the source, once it has taken its time.
func (s *source) lock() {
	s.mu.Lock()
	takes := s.takes
	s.mu.Unlock()
	time.Sleep(takes)
	s.mu.Lock()
}

func (s *source) tell(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

func (s *source) Most(i int) (most int64, free bool) { return s.limits[i].most, s.limits[i].free }

func (s *source) Take(wants []ledger.Want, try bool) error {
	s.lock()
	defer s.mu.Unlock()
	text, err := "take", s.fails
	for _, w := range wants {
		text += fmt.Sprintf(" %d of %d", w.Cost, w.Limit)
		l := s.limits[w.Limit]
		switch {
		case l.off:
		case w.Cost < 0:
			err = errInvalid
		case w.Cost > l.room && !l.free && try:
			err = ledger.ErrNoRoom
		case w.Cost > l.room && !l.free:
			err = errOver
		}
	}
	if try {
		text += ", or less"
	}
	s.tell("%s", text)
	if s.end != nil {
		s.end()
	}
	for i := range wants {
		w := &wants[i]
		l := &s.limits[w.Limit]
		if err == nil && !l.off && w.Cost <= l.room {
			l.room -= w.Cost
			s.at++
			w.At, w.Local, w.Lapses = s.at, l.local, l.lapses
		}
		w.Room = l.room
	}
	return err
}

func (s *source) SettleNow(settled []ledger.Settled) { s.settle(settled, ", now") }

func (s *source) SettleLater(settled []ledger.Settled) { s.settle(settled, "") }

func (s *source) settle(settled []ledger.Settled, when string) {
	s.lock()
	defer s.mu.Unlock()
	text := "settle"
	for _, c := range settled {
		text += fmt.Sprintf(" %d of %d's %d", c.Final, c.Limit, c.Cost)
		if c.Final >= 0 {
			s.limits[c.Limit].room += c.Cost - c.Final
		}
	}
	s.tell("%s", text+when)
}

// A step does something with a meter.
type step func(*ledger.Meter, *source)

func charge(costs ...int64) step { return charging(costs, false) }

func try(costs ...int64) step { return charging(costs, true) }

func charging(costs []int64, try bool) step {
	return func(m *ledger.Meter, s *source) {
		err := m.Charge(costs, try)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.tell("%v", err)
		}
		s.tell("left %d", m.Left(0))
	}
}

func end(costs ...int64) step {
	return func(m *ledger.Meter, s *source) {
		m.Close(costs)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tell("end, %v, left %d", m.Ended(), m.Left(0))
	}
}

func wait(d time.Duration) step { return func(*ledger.Meter, *source) { time.Sleep(d) } }

// set does something that takes no time.
func set(f step) step {
	return func(m *ledger.Meter, s *source) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f(m, s)
	}
}

var look = set(func(m *ledger.Meter, s *source) { s.tell("left %d", m.Left(0)) })

// leave leaves so much room.
func leave(room int64) step {
	return set(func(_ *ledger.Meter, s *source) { s.limits[0].room = room })
}

// last has what is asked of the source take a while.
func last(d time.Duration) step { return set(func(_ *ledger.Meter, s *source) { s.takes = d }) }

// fail has the source fail, and the call end meanwhile.
func fail(err error, ends bool) step {
	return set(func(m *ledger.Meter, s *source) {
		s.fails = err
		if ends {
			m.Ctx, s.end = context.WithCancel(m.Ctx)
		}
	})
}

// A meter asks its source for what is used and no more than it may, and gives back what is not.
func TestMeter(t *testing.T) {
	const plenty = 1e6
	for _, test := range []struct {
		name   string
		limits []limited
		steps  []step
		want   string
	}{
		{"what is in advance takes no trip", []limited{{begun: 5, advance: 5}}, []step{charge(3), charge(2, 9), end(1), end(1)},
			"left 2; left 0; settle -1 of 0's 5; end, <nil>, left 0; end, <nil>, left 0"},
		{"a portion lasts for a while", []limited{{room: plenty, most: plenty}}, []step{charge(10), wait(ledger.AdvanceTime / 4), charge(10), charge(5), end()},
			"take 10 of 0; left 0; take 30 of 0, or less; left 20; left 15; settle 15 of 0's 30; end, <nil>, left 0"},
		{"no more is taken than may be", []limited{{room: plenty, most: 7}}, []step{charge(5), charge(5), charge(9)},
			"take 5 of 0; left 0; take 7 of 0, or less; left 2; take 7 of 0; left 0"},
		{"what is lacking is taken instead of a portion", []limited{{room: 100, most: plenty}}, []step{charge(4), leave(5), charge(4), charge(4), charge(1), end(), charge(1)},
			"take 4 of 0; left 0; take 12 of 0, or less; take 4 of 0; left 0; take 4 of 0; over; left 0; over; left 0; settle -1 of 0's 4; end, over, left 0; over; left 0"},
		{"a try is refused and not its end", []limited{{room: 100, most: plenty}}, []step{charge(4), leave(5), try(6), try(5), try(1), end(), charge(1)},
			"take 4 of 0; left 0; take 12 of 0, or less; take 6 of 0, or less; no room; left 0; take 5 of 0, or less; left 0; take 1 of 0, or less; no room; left 0; settle -1 of 0's 5; end, <nil>, left 0; closed; left 0"},
		{"limits of a call each take their own", []limited{{room: plenty, most: plenty}, {room: 8, most: plenty}}, []step{charge(4, 1), charge(4, 1), charge(4, 1), charge(29), end()},
			"take 4 of 0 1 of 1; left 0; take 32 of 0 1 of 1, or less; left 28; take 1 of 1; left 24; take 256 of 0, or less; left 251; settle 5 of 0's 256 -1 of 1's 1; end, <nil>, left 0"},
		{"a failure is no refusal", []limited{{room: plenty, most: plenty}}, []step{charge(4), fail(errInvalid, false), charge(4), charge(4), end(), charge(4)},
			"take 4 of 0; left 0; take 32 of 0, or less; invalid; left 0; invalid; left 0; settle -1 of 0's 4; end, invalid, left 0; invalid; left 0"},
		{"a call that is over", []limited{{room: plenty, most: plenty}}, []step{fail(errOver, true), charge(4), charge(4), end(), charge(4)},
			"take 4 of 0; over; left 0; context canceled; left 0; end, <nil>, left 0; closed; left 0"},
		{"a cost below 0", []limited{{begun: 2, advance: 2}}, []step{charge(-1), end()},
			"take -1 of 0; invalid; left 2; settle 0 of 0's 2; end, invalid, left 0"},
		{"a cost below 0 while nothing is limited", []limited{{begun: 2, advance: 2, off: true, free: true}}, []step{charge(-1), end()},
			"take -1 of 0; left 2; settle 0 of 0's 2; end, <nil>, left 0"},
		{"what is not counted is not in advance", []limited{{room: plenty, most: plenty, off: true}}, []step{charge(4), charge(4), end()},
			"take 4 of 0; left 0; take 32 of 0, or less; left 0; end, <nil>, left 0"},
		{"nobody pays for what is free", []limited{{most: plenty, free: true}}, []step{charge(4), charge(4), charge(4), end()},
			"take 4 of 0; left 0; take 32 of 0, or less; left 28; left 24; end, <nil>, left 0"},
		{"what this process has taken is given back at once", []limited{{room: plenty, most: plenty, local: true}, {room: plenty, most: plenty}}, []step{charge(4, 4), charge(4, 4), charge(4, 4), end()},
			"take 4 of 0 4 of 1; left 0; take 32 of 0 32 of 1, or less; settle 4 of 0's 32; left 0; take 256 of 0, or less; settle 4 of 0's 256; left 0; settle 8 of 1's 32; end, <nil>, left 0"},
		{"what lapses is settled when it is due", []limited{{begun: 2, advance: 2}, {room: plenty, lapses: true}}, []step{wait(ledger.AdvanceTime / 2), charge(0, 3), wait(ledger.AdvanceTime/2 + 1), wait(ledger.AdvanceTime / 2), end()},
			"take 3 of 1; left 2; settle 0 of 0's 2; settle 3 of 1's 3; end, <nil>, left 0"},
		{"what lapses is settled when it is replaced", []limited{{room: 100, most: plenty, lapses: true}, {room: plenty}}, []step{charge(4, 4), charge(4, 4), charge(4, 4), end()},
			"take 4 of 0 4 of 1; left 0; take 12 of 0 4 of 1, or less; settle 4 of 0's 4; left 8; take 4 of 1; left 4; settle 8 of 0's 12 -1 of 1's 4; end, <nil>, left 0"},
		{"what lapses is settled before it is refused", []limited{{room: 100, most: plenty, lapses: true}, {room: plenty, most: plenty}}, []step{charge(4, 1), charge(4, 1), leave(3), charge(10, 9), charge(2), end()},
			"take 4 of 0 1 of 1; left 0; take 12 of 0 8 of 1, or less; settle 4 of 0's 4; left 8; take 10 of 0 64 of 1, or less; settle 4 of 0's 12, now; take 10 of 0 2 of 1; left 0; take 2 of 0, or less; settle 10 of 0's 10, now; take 2 of 0; over; left 0; settle -1 of 1's 2; end, over, left 0"},
		{"what lapses and is no advance", []limited{{room: plenty}, {room: 5, lapses: true}}, []step{charge(1, 3), charge(1, 3), end()},
			"take 1 of 0 3 of 1; left 0; take 1 of 0 3 of 1, or less; settle 3 of 1's 3, now; take 1 of 0 3 of 1; over; left 0; settle -1 of 0's 1; end, over, left 0"},
		{"what the caller settles", []limited{{begun: 5}, {begun: 6, lapses: true}, {begun: 7, room: plenty}, {begun: 8}}, []step{charge(0, 0, 3), wait(2 * ledger.AdvanceTime), end(1, 2, 3), end(1, 2, 3)},
			"take 3 of 2; left 0; settle 1 of 0's 5 2 of 1's 6 -1 of 2's 3 -1 of 3's 8; end, <nil>, left 0; end, <nil>, left 0"},
		{"what the caller would settle and is refused", []limited{{begun: 5, lapses: true}}, []step{charge(1), end(2)},
			"take 1 of 0, or less; settle 5 of 0's 5, now; take 1 of 0; over; left 0; end, over, left 0"},
		{"what is in advance waits for a second", []limited{{begun: 5, advance: 5, room: plenty}}, []step{wait(ledger.AdvanceTime - 1), charge(1), wait(1), charge(1), end()},
			"left 4; settle 1 of 0's 5; take 1 of 0; left 0; settle -1 of 0's 1; end, <nil>, left 0"},
		{"what is overdue after a long trip", []limited{{begun: 5, advance: 5, room: plenty}, {}}, []step{last(3 * ledger.AdvanceTime / 2), try(0, 3), last(0), wait(ledger.AdvanceTime / 2), look, end()},
			"take 3 of 1, or less; no room; left 5; settle 0 of 0's 5; left 0; end, <nil>, left 0"},
		{"what is overdue after a long trip is not used", []limited{{begun: 5, advance: 5, room: plenty}, {}}, []step{last(3 * ledger.AdvanceTime / 2), try(0, 3), last(0), charge(1), end()},
			"take 3 of 1, or less; no room; left 5; settle 0 of 0's 5; take 1 of 0; left 0; settle -1 of 0's 1; end, <nil>, left 0"},
		{"the end waits for what is given back", []limited{{begun: 5, advance: 5}}, []step{last(ledger.AdvanceTime / 2), wait(5 * ledger.AdvanceTime / 4), end()},
			"settle 0 of 0's 5; end, <nil>, left 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s := &source{limits: test.limits, at: 10}
				m := &ledger.Meter{Charger: s, Ctx: ctx, Closed: errClosed}
				for _, l := range test.limits {
					m.Begin(ledger.Metered{Made: ledger.Made{Cost: l.begun, At: min(l.begun, 1), Local: l.local}, Lapses: l.lapses}, l.advance)
				}
				for _, do := range test.steps {
					do(m, s)
					synctest.Wait()
				}
				if got := strings.Join(s.told, "; "); got != test.want {
					t.Errorf("got  %s\nwant %s", got, test.want)
				}
			})
		})
	}
}
