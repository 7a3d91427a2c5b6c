package ratehttp_test

import (
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// usagesOf returns a function that finds the usages of the user in the query.
func usagesOf(limiter *runtime.Limiter, rules ...*runtime.Rule) func(*http.Request) ([]runtime.Usage, error) {
	return func(r *http.Request) ([]runtime.Usage, error) {
		var limits []runtime.Limit
		for _, rule := range rules {
			limits = append(limits, rule.Limit(runtime.NewKey().AddString(r.URL.Query().Get("user"))))
		}
		return limiter.Usage(r.Context(), limits...)
	}
}

// history returns the months of ann or of bob, or the days, in India. The header User says whose they are.
func history(r *http.Request, q ratehttp.HistoryQuery) (all []runtime.PastPeriod, err error) {
	user := slices.Index([]string{"ann", "bob"}, r.Header.Get("User"))
	if user < 0 {
		return nil, statusError(http.StatusUnauthorized)
	}
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 5*3600+1800))
	for n := range 103 {
		p := runtime.PastPeriod{Start: first.AddDate(0, n, 0), End: first.AddDate(0, n+1, 0), Used: int64(1000*user + n + 1)}
		if q.Days {
			p.Start, p.End = first.AddDate(0, 0, n), first.AddDate(0, 0, n+1)
		}
		if p.End.After(q.From) && (q.To.IsZero() || p.Start.Before(q.To)) {
			all = append(all, p)
		}
	}
	return all, nil
}
