package rateledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/accounts"
)

// A Period is what a key has used of a period of the calendar.
type Period struct {
	// Start and End are in the time zone of the rule.
	Start, End time.Time
	// Used is the sum over all epochs; Max that of the last of them.
	Used, Max int64
}

// A Day is what a key has used on a day of its zone. Where Postgres was away it may be that of days
// before, too. What was charged within an interval of [Ledger.Run] before midnight may be of the next.
type Day struct {
	// Date is midnight in UTC.
	Date time.Time
	Used int64
}

// Totals returns what a key, as [rule.Key.String] returns it, has used of the periods of a rule that
// end after from and begin before to, in order; of zero times of all. They are those of the ledger,
// which is behind by [Ledger.Lag].
func (l *Ledger) Totals(ctx context.Context, rule, key string, from, to time.Time) ([]Period, error) {
	rows, k, err := l.read(ctx, rule, key, Query{From: from, To: to})
	var all []Period
	for _, r := range rows {
		if n := len(all); n == 0 || !all[n-1].End.Equal(r.End) {
			all = append(all, Period{Start: k.Time(r.Begin), End: k.Time(r.End)})
		}
		last := &all[len(all)-1]
		last.Used, last.Max = last.Used+r.Total, r.Max
		if r.Begin.Before(last.Start) {
			last.Start = k.Time(r.Begin)
		}
	}
	return all, err
}

// Days is [Ledger.Totals] by day, of days on which something was used.
func (l *Ledger) Days(ctx context.Context, rule, key string, from, to time.Time) ([]Day, error) {
	rows, _, err := l.read(ctx, rule, key, Query{From: from, To: to, Days: true})
	used := map[time.Time]int64{}
	for i, r := range rows {
		before := int64(0)
		if i > 0 && rows[i-1].Epoch == r.Epoch && rows[i-1].End.Equal(r.End) {
			before = rows[i-1].Total
		}
		used[r.Day] += r.Total - before
	}
	var days []Day
	for date, n := range used {
		if n != 0 && (from.IsZero() || !date.Before(from)) && (to.IsZero() || date.Before(to)) {
			days = append(days, Day{date, n})
		}
	}
	slices.SortFunc(days, func(a, b Day) int { return a.Date.Compare(b.Date) })
	return days, err
}

// History is [Ledger.Totals] or [Ledger.Days], of which each day begins and ends in the time zone of the
// rule, as ratehttp.History takes them. A day or a period on which nothing was used may be missing.
func (l *Ledger) History(ctx context.Context, rule, key string, from, to time.Time, days bool) ([]runtime.PastPeriod, error) {
	var all []runtime.PastPeriod
	if !days {
		totals, err := l.Totals(ctx, rule, key, from, to)
		for _, p := range totals {
			all = append(all, runtime.PastPeriod{Start: p.Start, End: p.End, Used: p.Used})
		}
		return all, err
	}
	const margin = 48 * time.Hour // a day, and the offset of a zone
	first, last := from, to
	if !from.IsZero() {
		first = from.Add(-margin)
	}
	if !to.IsZero() {
		last = to.Add(margin)
	}
	found, err := l.Days(ctx, rule, key, first, last)
	k, _ := l.accounts.Find(rule, []byte(key))
	for _, d := range found {
		p := runtime.PastPeriod{Used: d.Used}
		if p.Start, p.End = k.Bounds(d.Date); p.End.After(from) && (to.IsZero() || p.Start.Before(to)) {
			all = append(all, p)
		}
	}
	return all, err
}

// read returns the rows of a key.
func (l *Ledger) read(ctx context.Context, rule, key string, q Query) ([]Row, accounts.Key, error) {
	k, ok := l.accounts.Find(rule, []byte(key))
	if !ok {
		return nil, k, fmt.Errorf("rateledger: no limiter of the store has a rule %q with a ledger: register it, see runtime.Limiter.Register", rule)
	}
	q.Namespace, q.Rule, q.Key = k.Namespace(), k.Name, keyOf(k.Rule, k.Parts())
	rows, err := l.sink.Read(ctx, q)
	return rows, k, err
}
