package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// write writes what was found as tables in Markdown.
func write(w io.Writer, c config, findings []finding) {
	fmt.Fprintf(w, "%d requests in %v, %d replicas, %v each where nothing happens.\n\n", c.most, c.window, c.replicas, c.lasts)
	fmt.Fprintln(w, "| the peer counts by | client | callers | requests | refused | of the limit used | sent by a replica | the longest call |")
	fmt.Fprintln(w, "|---|---|---|---:|---:|---:|---:|---:|")
	for _, f := range findings {
		if f.seen == "" && f.sent > 0 {
			fmt.Fprintf(w, "| %s | %s | %s | %d | %d | %.2f %% | %d to %d | %.1f s |\n",
				f.name, f.client, callers(f.steady.callers), f.sent, f.refused, f.used*100, f.leastServed, f.mostServed, f.longest.Seconds())
		}
	}
	fmt.Fprint(w, "\n| what happens | what was seen |\n|---|---|\n")
	for _, f := range findings {
		if f.seen != "" {
			fmt.Fprintf(w, "| %s | %s |\n", f.name, f.seen)
		}
	}
	fmt.Fprintf(w, "\nMeasured on %s.\n", time.Now().UTC().Format(time.DateOnly))
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
