package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/printed"
)

// repeated prints a table in the place of the one before, if there is a screen.
func repeated[T any](s *session, title, head string, values []T, row func(T) []string) error {
	title += ", " + time.Now().Format(time.TimeOnly)
	if s.screen != nil {
		s.screen.show(view{title, strings.Fields(head), cells(values, row)}, nil)
		return nil
	}
	if s.clears && !s.json() {
		fmt.Fprintf(s.out, "\033[H\033[2J%s\n", title)
	}
	return printEach(&s.printer, head, values, row)
}

func (s *session) reportRetry(err error) {
	if s.screen != nil {
		s.screen.show(view{}, err)
		return
	}
	s.logger().Printf("%s; trying again in %v", visible(err.Error()), s.every)
}

// pause waits for the next table, and reports false if it is to end.
func (s *session) pause(ctx context.Context) bool {
	select {
	case <-time.After(s.every):
	case <-s.screen.wakes():
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

type rateLine struct {
	Rule      string  `json:"rule"`
	Admitted  float64 `json:"admitted_per_s"`
	Refused   float64 `json:"refused_per_s"`
	Shadow    float64 `json:"shadow_per_s"` // that would have been refused
	Undecided float64 `json:"undecided_per_s"`
}

func (l rateLine) row() []string {
	n := func(f float64) string { return fmt.Sprintf("%.1f", f) }
	return []string{l.Rule, n(l.Refused), n(l.Admitted), n(l.Shadow), n(l.Undecided)}
}

// A pageFrame is what a page tells of one second: calls that were admitted,
// refused, only counted by a rule in the shadow, and undecided.
type pageFrame struct {
	Point *struct{ Seconds float64 }
	Rows  []struct {
		Name string
		N    [4]float64
	}
}

// maxFrame is more than a page sends at once.
const maxFrame = 64 << 20

// ofPage prints what a live page tells. If it is to go on until an interrupt, a
// stream that ends is followed by another.
func (s *session) ofPage(ctx context.Context) error {
	for printed := 0; ; {
		err := s.followPage(ctx, &printed)
		if err == nil || printed == 0 || s.count > 0 || ctx.Err() != nil {
			return err
		}
		s.reportRetry(err)
		if !s.pause(ctx) {
			return nil
		}
	}
}

func (s *session) followPage(ctx context.Context, printed *int) error {
	stream, err := s.askPage(ctx, "-page", s.page, "api/stream", "text/event-stream")
	if err != nil {
		return err
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxFrame)
	calls, seconds, event := make(map[string][4]float64), 0.0, ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		if name == "event" {
			event = value
		}
		if name != "data" || event != "frame" {
			continue
		}
		var f pageFrame
		if err := json.Unmarshal([]byte(value), &f); err != nil {
			return foreign{fmt.Errorf("page %s: not what a live page sends: %w", s.page, err)}
		}
		if f.Point == nil {
			continue
		}
		seconds += f.Point.Seconds
		for _, row := range f.Rows {
			for i, n := range calls[row.Name] {
				row.N[i] += n
			}
			calls[row.Name] = row.N
		}
		if seconds < s.every.Seconds()*0.9 {
			continue
		}
		if err := s.rates(ratesOf(calls, seconds)); err != nil {
			return err
		}
		if *printed++; *printed == s.count {
			return nil
		}
		seconds = 0
		clear(calls)
	}
	return foreign{fmt.Errorf("page %s: %w", s.page, cmp.Or(lines.Err(), errors.New("the program has ended the stream")))}
}

// maxPast is how many tables of a page are remembered.
const maxPast = 100

func (s *session) rates(now []rateLine) error {
	const columns = "REFUSED/S ADMITTED/S SHADOW/S UNDECIDED/S"
	rule := s.screen.rule()
	if s.screen != nil {
		s.past = slices.Insert(s.past, 0, pastRates{time.Now(), now})
		s.past = s.past[:min(len(s.past), maxPast)]
	}
	if rule == "" {
		return repeated(s, "calls a second of one program", "RULE "+columns, now, rateLine.row)
	}
	return repeated(s, "calls a second of "+printed.Text(rule)+" in one program", "TIME "+columns, s.past, func(p pastRates) []string {
		line := rateLine{}
		for _, l := range p.rates {
			if printed.Text(l.Rule) == rule {
				line = l
			}
		}
		line.Rule = p.at.Format(time.TimeOnly)
		return line.row()
	})
}

type pastRates struct {
	at    time.Time
	rates []rateLine
}

// ratesOf returns calls a second, those rules first that refuse most.
func ratesOf(calls map[string][4]float64, seconds float64) []rateLine {
	var rates []rateLine
	for name, n := range calls {
		rates = append(rates, rateLine{name, n[0] / seconds, n[1] / seconds, n[2] / seconds, n[3] / seconds})
	}
	slices.SortFunc(rates, func(a, b rateLine) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(b.Admitted, a.Admitted), cmp.Compare(a.Rule, b.Rule))
	})
	return rates
}
