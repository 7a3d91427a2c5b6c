package main

import (
	"fmt"
	"io"
	"strings"
)

const (
	// clients is how many connections a Redis accepts by default, its maxclients.
	clients = 10_000
	// inFlight is how many requests a process has under way to one master at most, if
	// Redis is far away. See package runtime/internal/batch.
	inFlight = 16
	// reload is how often a client of go-redis asks for the topology, in seconds.
	reload = 60
)

// report prints what processes do to one master, and from how many of them on each is the
// bound.
func (f *fleet) report(out io.Writer, p plan) {
	n, shards := float64(p.Processes), float64(p.Shards)
	fmt.Fprintf(out, "%d processes on %d masters (%s). Times are of one core of the machine that measured them.\n\n", p.Processes, p.Shards, f.product)
	fmt.Fprint(out, "| of one master | a process | all | bound at |\n|---|---:|---:|---:|\n")
	row := func(what, one, all string, most float64) {
		bound := "-"
		if most > 0 {
			bound = fmt.Sprintf("%.0f processes", most)
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", what, one, all, bound)
	}
	for i, callers := range f.callers {
		c := f.connections[i]
		row(fmt.Sprintf("connections, callers at a time in a process: %d", callers), fmt.Sprintf("%.1f", c), fmt.Sprintf("%.0f", c*n), clients/max(c, 1))
	}
	row("connections, Redis far away: the most", fmt.Sprint(inFlight), fmt.Sprintf("%.0f", inFlight*n), clients/inFlight)
	row("memory of a connection", fmt.Sprintf("%.0f kB", f.idle/1000), fmt.Sprintf("%.0f MB", f.idle*n/1e6), 0)
	row("all connect at once, after a failover", fmt.Sprintf("%.0f µs", f.connect.micros), fmt.Sprintf("%.0f ms", f.connect.micros*n/1000), 0)
	share := f.topology.micros / reload / 1e6 / shards
	row(fmt.Sprintf("topology, each %d s", reload), fmt.Sprintf("%.0f µs", f.topology.micros), fmt.Sprintf("%.3f %%", 100*share*n), 1/share)
	row("all ask for the topology at once, after a failover", fmt.Sprintf("%.0f µs", f.topology.micros), fmt.Sprintf("%.0f ms", f.topology.micros*n/shards/1000), 0)
	for i, fields := range f.fields {
		poll := f.polls[i]
		row(fmt.Sprintf("%d overrides, each second, of the master that has them", fields), fmt.Sprintf("%.0f µs, %.0f kB", poll.micros, poll.out/1000),
			fmt.Sprintf("%.0f %%, %.0f MB/s", poll.micros*n/1e4, poll.out*n/1e6), 1e6/poll.micros)
	}
	f.draw(out, p)
}

// draw draws how much of one core overrides take.
func (f *fleet) draw(out io.Writer, p plan) {
	var processes []string
	lines := make([][]string, len(f.fields))
	for i := range 5 {
		n := p.Processes * (i + 1) / 5
		processes = append(processes, fmt.Sprint(n))
		for j := range f.fields {
			lines[j] = append(lines[j], fmt.Sprintf("%.1f", min(100, f.polls[j].micros*float64(n)/1e4)))
		}
	}
	fmt.Fprint(out, "\nHow much of a core its master spends on overrides that all processes read each second, from the\nlowest line to the highest with")
	for i, fields := range f.fields {
		fmt.Fprintf(out, "%s %d", []string{"", ","}[min(i, 1)], fields)
	}
	fmt.Fprintf(out, " fields:\n\n```mermaid\nxychart-beta\n    x-axis \"processes\" [%s]\n    y-axis \"%% of a core\" 0 --> 100\n", strings.Join(processes, ", "))
	for _, line := range lines {
		fmt.Fprintf(out, "    line [%s]\n", strings.Join(line, ", "))
	}
	fmt.Fprint(out, "```\n")
}
