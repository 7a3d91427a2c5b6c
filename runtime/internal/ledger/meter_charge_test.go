package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/document"
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

// A metering is one scenario of testdata/meter.txt.
type metering struct {
	*testing.T
	source
	meter ledger.Meter
}

// TestMeter plays the document of meters.
func TestMeter(t *testing.T) {
	document.Run(t, "testdata/meter.txt", "all", func(t *testing.T, s *document.Scenario, world document.World, _ *strings.Replacer) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m := &metering{T: t, source: source{at: 10}}
		m.meter = ledger.Meter{Charger: &m.source, Ctx: ctx, Closed: errClosed}
		for _, l := range s.Lines {
			if l.Step == "" {
				continue
			}
			m.do(strings.Fields(l.Step))
			synctest.Wait()
			m.mu.Lock()
			l.Answer(t, world, strings.Join(m.told, "; "))
			m.told = nil
			m.mu.Unlock()
		}
	})
}

func (m *metering) do(words []string) {
	var costs []int64
	for _, word := range words[1:] {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			costs = append(costs, n)
		}
	}
	duration := func() time.Duration {
		d, err := time.ParseDuration(words[1])
		if err != nil {
			m.Fatal(err)
		}
		return d
	}
	var err error
	switch words[0] {
	case "limit":
		m.begin(words[1:])
	case "charge", "try":
		err = m.meter.Charge(costs, words[0] == "try")
	case "end":
		m.meter.Close(costs)
	case "wait":
		time.Sleep(duration())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch words[0] {
	case "limit", "wait":
	case "charge", "try", "look":
		if err != nil {
			m.tell("%v", err)
		}
		m.tell("left %d", m.meter.Left(0))
	case "end":
		m.tell("end, %v, left %d", m.meter.Ended(), m.meter.Left(0))
	case "leave":
		m.limits[0].room = costs[0]
	case "lasts":
		m.takes = duration()
	case "fail":
		m.fails = map[string]error{"invalid": errInvalid, "over": errOver}[words[1]]
		if len(words) > 2 {
			m.meter.Ctx, m.source.end = context.WithCancel(m.meter.Ctx)
		}
	default:
		m.Fatalf("no step is %q", words)
	}
}

// begin begins a limit.
func (m *metering) begin(fields []string) {
	var l limited
	numbers := map[string]*int64{"begun": &l.begun, "advance": &l.advance, "room": &l.room, "most": &l.most}
	truths := map[string]*bool{"free": &l.free, "off": &l.off, "local": &l.local, "lapses": &l.lapses}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		if number := numbers[name]; number != nil {
			*number, _ = strconv.ParseInt(value, 10, 64)
		} else {
			*truths[name] = true
		}
	}
	m.mu.Lock()
	m.limits = append(m.limits, l)
	m.mu.Unlock()
	m.meter.Begin(ledger.Metered{Made: ledger.Made{Cost: l.begun, At: min(l.begun, 1), Local: l.local}, Lapses: l.lapses}, l.advance)
}
