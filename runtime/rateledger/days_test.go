package rateledger

import (
	"context"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/seed"
	"github.com/rategen/rategen/runtime/internal/accounts"
	"github.com/rategen/rategen/runtime/internal/memstate"
	"github.com/rategen/rategen/runtime/internal/plan"
	"github.com/rategen/rategen/runtime/internal/terms"
	"github.com/rategen/rategen/runtime/rediswire"
	"github.com/rategen/rategen/runtime/rule"
)

// unclaimed is a Redis that gives each rule the keys that it claims, and nothing else.
type unclaimed struct{ rediswire.Client }

func (u unclaimed) Patient(time.Duration) rediswire.Server { return u }

func (unclaimed) Do(_ context.Context, claims []rediswire.Command) {
	for i := range claims {
		claims[i].Value = claims[i].Args[4]
	}
}

// TestDays holds the history of three months, in zones whose clocks change in them, against the sum of
// the calls of each day and period. A key may rest for days, and Postgres be away.
func TestDays(t *testing.T) {
	sink, random := newSink(t), seed.New(t)
	for _, zone := range []string{"", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata", "Australia/Lord_Howe"} {
		for _, period := range []rule.Period{rule.Day, rule.Week, rule.Month} {
			now := time.Date(2018, time.September, 20, 0, 0, 0, 0, time.UTC).UnixMicro()
			store := memstate.NewStore(100)
			store.Clock = func() int64 { return now }
			r := &rule.Rule{Name: zone + period.String(), Algorithm: rule.FixedWindow, Period: period, Zone: zone, Max: 1000, Ledger: rule.LedgerOn}
			p := &plan.Plan{Key: plan.Key{Rule: r, Max: r.Max}, Declared: r, Numbers: plan.NumbersOf(r), Label: terms.Label{Name: r.Name, Start: r.Name + ":"}}
			p.Complete(1)
			l := &Ledger{sink: sink, accounts: &accounts.Accounts{Store: store, Client: unclaimed{}}, now: func() time.Time { return time.UnixMicro(now) }}
			l.accounts.Add(p, "")
			defer l.accounts.Open(time.Second)()
			location, err := time.LoadLocation(zone)
			ok(t, err)
			days, ends, key := map[time.Time]int64{}, map[int64]int64{}, p.AppendKey(nil, []byte("k"))
			for range 250 {
				now += random.Int64N(18 * time.Hour.Microseconds())
				if random.IntN(40) == 0 {
					now += 5 * 24 * time.Hour.Microseconds()
				}
				c := terms.Charge{}
				p.Charge(&c, key, 1+random.Int64N(5))
				calls := []terms.Call{{Charges: []terms.Charge{c}}}
				ok(t, store.Take(t.Context(), calls))
				p.Charged(key)
				year, month, day := time.UnixMicro(now).In(location).Date()
				days[time.Date(year, month, day, 0, 0, 0, 0, time.UTC)] += c.Cost
				ends[p.Numbers.Period.At(now).End] += c.Cost
				ok(t, l.Flush(t.Context()))
			}
			found, err := l.Days(t.Context(), r.Name, "k", time.Time{}, time.Time{})
			ok(t, err)
			for _, d := range found {
				if days[d.Date] != d.Used {
					t.Errorf("%s: %d used on %v, want %d", r.Name, d.Used, d.Date, days[d.Date])
				}
			}
			history, err := l.History(t.Context(), r.Name, "k", time.Time{}, time.Time{}, true)
			ok(t, err)
			for i, h := range history {
				// As clocks show them. Where midnight is skipped a day begins later, on its date.
				y, m, d := h.Start.Date()
				before := h.Start.Add(-1)
				if !found[i].Date.Equal(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)) || found[i].Used != h.Used || before.Day() == d || h.End.Day() == d || h.End.Add(-1).Day() != d {
					t.Errorf("%s: %v to %v used %d, want %v", r.Name, h.Start, h.End, h.Used, found[i])
				}
				// Each page begins where the one before has ended.
				rest, err := l.History(t.Context(), r.Name, "k", h.End, time.Time{}, true)
				ok(t, err)
				if len(rest) != len(history)-i-1 || len(rest) > 0 && !rest[0].Start.Equal(history[i+1].Start) {
					t.Errorf("%s: %d days after %v, want %d", r.Name, len(rest), h.End, len(history)-i-1)
				}
			}
			totals, err := l.Totals(t.Context(), r.Name, "k", time.Time{}, time.Time{})
			ok(t, err)
			for _, p := range totals {
				if ends[p.End.UnixMicro()] != p.Used || p.Max != 1000 {
					t.Errorf("%s: %d used until %v, want %d", r.Name, p.Used, p.End, ends[p.End.UnixMicro()])
				}
			}
			if len(found) != len(days) || len(totals) != len(ends) {
				t.Errorf("%s: %d days and %d periods, want %d and %d", r.Name, len(found), len(totals), len(days), len(ends))
			}
		}
	}
}
