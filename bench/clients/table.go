package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// write writes a table of the parts in which nothing happens.
func write(w io.Writer, c config, findings []finding) {
	if len(findings) == 0 {
		return
	}
	fmt.Fprintf(w, "%d requests in %v, %d replicas, %v each, begun on %s:\n\n", c.most, c.window, c.replicas, c.lasts, time.Now().UTC().Add(-c.lasts).Format(time.DateOnly))
	fmt.Fprintln(w, "| the peer counts by | client | callers | requests | refused | of the limit used | served to a replica | the longest call |")
	fmt.Fprintln(w, "|---|---|---|---:|---:|---:|---:|---:|")
	for _, f := range findings {
		if f.sent > 0 { // else it has failed
			fmt.Fprintf(w, "| %s | %s | %s | %d | %d | %.2f %% | %d to %d | %.1f s |\n",
				f.name, f.client, callers(f.callers), f.sent, f.refused, f.used*100, f.leastServed, f.mostServed, f.longest.Seconds())
		}
	}
	fmt.Fprintln(w)
}

// writeIncidents writes a table of the parts in which something happens.
func writeIncidents(w io.Writer, c config, findings []finding) {
	if len(findings) == 0 {
		return
	}
	fmt.Fprintf(w, "%d requests in %v, %d replicas:\n\n", c.most, c.window, c.replicas)
	fmt.Fprint(w, "| what happens | what was seen |\n|---|---|\n")
	for _, f := range findings {
		if f.seen != "" {
			fmt.Fprintf(w, "| %s | %s |\n", f.name, f.seen)
		}
	}
}

// callers says how many callers the replicas have.
func callers(each []int) string {
	if n := slices.Index(each, 0); n > 0 {
		return fmt.Sprintf("%d in each of %d replicas", each[0], n)
	}
	if each[0] != each[1] {
		return fmt.Sprintf("%d in one replica, %d in each other", each[0], each[1])
	}
	return fmt.Sprintf("%d in each replica", each[0])
}
