package main

import (
	"fmt"
	"io"
	"time"

	"github.com/rategen/rategen/internal/testkit/faults"
	"github.com/rategen/rategen/runtime"
)

// write writes the tables.
func write(w io.Writer, product string, rows []*row, distances []faults.Distance, lasts time.Duration) {
	writeDistances(w, distances)
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "%s. A fault lasts %v unless it heals by itself. Measured with %s.\n\n", faults.Traffic, lasts, product)
	fmt.Fprintln(w, "| Redis | fault | policy | longest call | by the store | most in a window | enforced again |")
	fmt.Fprintln(w, "|---|---|---|---:|---:|---:|---:|")
	for _, r := range rows {
		where, name := string(r.fault.Where), r.fault.Name
		if r.failed {
			fmt.Fprintf(w, "| %s | %s | | failed | | | |\n", where, name)
		}
		for _, s := range r.seen {
			fmt.Fprintf(w, "| %s | %s | `%v` | %s | %s | %s | %s |\n", where, name, s.Policy, short(s.Max), share(s.Store, s.Calls), bound(s), recovery(s.Enforced))
			where, name = "", ""
		}
	}
}

// writeDistances writes what callers saw of a Redis far away.
func writeDistances(w io.Writer, distances []faults.Distance) {
	if len(distances) == 0 {
		return
	}
	fmt.Fprintf(w, "A Redis that answers each request late, a budget of %v, tuned clients whose callers call again at once:\n\n", runtime.DefaultTimeout)
	fmt.Fprintln(w, "| delay | callers | decided | p50 | p99 |")
	fmt.Fprintln(w, "|---:|---:|---:|---:|---:|")
	for _, d := range distances {
		fmt.Fprintf(w, "| %s | %d | %s | %s | %s |\n", short(d.Delay), d.Callers, share(d.Calls-d.Undecided, d.Calls), short(d.P50), short(d.P99))
	}
	fmt.Fprintln(w)
}

// short returns a duration as one reads it.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// recovery returns how long it took until limits were enforced again.
func recovery(d time.Duration) string {
	if d < 0 {
		return "not"
	}
	if d < time.Millisecond {
		return "at once"
	}
	return short(d)
}

// share says in percent how many of all n are, with as many digits as a miss of a few in ten
// thousand needs where it would be 0 or 100 without being it.
func share(n, all int) string {
	percent, digits := 100*float64(n)/float64(max(all, 1)), 0
	if n != 0 && n != all && (percent < 1 || percent > 99) {
		digits = 2
	}
	return fmt.Sprintf("%.*f %%", digits, percent)
}

// bound is the most that was admitted in a window, and what the formula allows: of an open policy, of
// what the store admitted.
func bound(s faults.Seen) string {
	if s.Bound < 0 {
		return fmt.Sprintf("%d ≤ %d, %d in all", s.Healthy, s.HealthyBound, s.Worst)
	}
	return fmt.Sprintf("%d ≤ %d", s.Worst, s.Bound)
}
