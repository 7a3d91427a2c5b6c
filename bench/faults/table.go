package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/testkit/faults"
	"github.com/rategen/rategen/runtime"
)

// write writes the tables.
func write(w io.Writer, product string, rows []*row, crowds []faults.Crowd, distances []faults.Distance, stalls []faults.Stall, lasts time.Duration) {
	writeDistances(w, distances)
	writeStalls(w, stalls)
	if len(crowds) > 0 {
		fmt.Fprintf(w, "%d calls at once on a Redis that gives no answer, a budget of %v:\n\n", crowds[0].Calls, runtime.DefaultTimeout)
		fmt.Fprintln(w, "| Redis | answered | p50 | p99 | max |")
		fmt.Fprintln(w, "|---|---:|---:|---:|---:|")
		for _, c := range crowds {
			fmt.Fprintf(w, "| %s | 100 %% | %s | %s | %s |\n", c.Name, short(c.P50), short(c.P99), short(c.Max))
		}
		fmt.Fprintln(w)
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "%s. A fault lasts %v unless it heals by itself. Measured with %s.\n", faults.Traffic, lasts, product)
	var where faults.Where
	for _, r := range rows {
		if r.fault.Where != where {
			where = r.fault.Where
			fmt.Fprintf(w, "\n**%s**\n\n", strings.ToUpper(string(where[:1]))+string(where[1:]))
			fmt.Fprintln(w, "| fault | policy | answered | p50 | p99 | max | by the store | the others saw | classes | most in a window | decided again | enforced again | tuned |")
			fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---|---|---:|---:|---:|---:|")
		}
		name := r.fault.Name
		if r.failed {
			fmt.Fprintf(w, "| %s | | failed | | | | | | | | | | |\n", name)
		}
		for i, s := range r.seen {
			tuned := ""
			if i < len(r.tuned) {
				tuned = recoveryTime(r.tuned[i].Enforced)
			}
			fmt.Fprintf(w, "| %s | `%v` | 100 %% of %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
				name, s.Policy, s.Calls, short(s.P50), short(s.P99), short(s.Max),
				share(s.Store, s.Calls), callerResults(s), classes(s.Classes), bound(s), recoveryTime(s.Back), recoveryTime(s.Enforced), tuned)
			name = ""
		}
	}
}

// writeDistances writes what callers saw of a Redis far away.
func writeDistances(w io.Writer, distances []faults.Distance) {
	if len(distances) == 0 {
		return
	}
	fmt.Fprintf(w, "A Redis that answers each request late, a budget of %v, callers that call again at once, for three seconds after one in which connections are made:\n\n", runtime.DefaultTimeout)
	fmt.Fprintln(w, "| delay | callers | client | decided | breaker opened | p50 | p99 |")
	fmt.Fprintln(w, "|---:|---:|---|---:|---:|---:|---:|")
	for _, d := range distances {
		fmt.Fprintf(w, "| %s | %d | %s | %s of %d | %d times | %s | %s |\n", short(d.Delay), d.Callers, clientName(d.Tuned),
			percent(d.Calls-d.Undecided, d.Calls), d.Calls, d.Openings, short(d.P50), short(d.P99))
	}
	fmt.Fprintln(w)
}

// writeStalls writes what callers saw of a Redis that stalled once.
func writeStalls(w io.Writer, stalls []faults.Stall) {
	if len(stalls) == 0 {
		return
	}
	fmt.Fprintf(w, "A Redis that stops once, by SIGSTOP, under callers that call again a millisecond after they were answered:\n\n")
	fmt.Fprintln(w, "| stall | callers | client | not decided, of those during the stall | of others | breaker |")
	fmt.Fprintln(w, "|---:|---:|---|---:|---:|---|")
	for _, s := range stalls {
		opened := "closed"
		if s.Openings > 0 {
			opened = fmt.Sprintf("open after %s", short(s.OpenAfter))
		}
		fmt.Fprintf(w, "| %s | %d | %s | %d | %d | %s |\n", short(s.Lasts), s.Callers, clientName(s.Tuned), s.Undecided, s.Others, opened)
	}
	fmt.Fprintln(w)
}

func clientName(tuned bool) string {
	if tuned {
		return "tuned"
	}
	return "default"
}

// percent returns a share with as many digits as a miss of a few in ten thousand
// needs.
func percent(n, of int) string {
	if n == of {
		return "100 %"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(of))
}

// short returns a duration as one reads it.
func short(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%d µs", d.Microseconds())
	}
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func recoveryTime(d time.Duration) string {
	if d < 0 {
		return "not"
	}
	if d < time.Millisecond {
		return "at once"
	}
	return short(d)
}

// callerResults is what callers saw that the store gave no answer.
func callerResults(s faults.Seen) string {
	return shares(s.Calls-s.Store, []string{"admitted", "refused", "`ErrUnavailable`", "another error"},
		[]int{s.Admitted, s.Refused, s.Undecided, s.Strange})
}

// shares says which of the names have which share of all.
func shares(all int, names []string, counts []int) string {
	var parts []string
	for i, n := range counts {
		switch n {
		case 0:
		case all:
			parts = append(parts, names[i])
		default:
			parts = append(parts, names[i]+" "+share(n, all))
		}
	}
	return strings.Join(parts, ", ")
}

// share says in percent how many of all n are, with a digit more where it would
// be 0 or 100 without being it.
func share(n, all int) string {
	percent, digits := 100*float64(n)/float64(max(all, 1)), 0
	if n != 0 && n != all && (percent < 1 || percent > 99) {
		digits = 1
	}
	return fmt.Sprintf("%.*f %%", digits, percent)
}

// classes returns the classes of failures, the most frequent first.
func classes(count map[string]int) string {
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		if d := count[b] - count[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("`%s` %d", name, count[name])
	}
	return strings.Join(names, ", ")
}

// bound is the most that was admitted in a window, and what the formula allows.
func bound(s faults.Seen) string {
	if s.Bound < 0 {
		return fmt.Sprintf("%d, by the store %d ≤ %d", s.Worst, s.Healthy, s.HealthyBound)
	}
	return fmt.Sprintf("%d ≤ %d", s.Worst, s.Bound)
}
