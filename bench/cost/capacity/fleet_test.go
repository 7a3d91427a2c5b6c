package main

import (
	"bytes"
	"strings"
	"testing"
)

// Costs of one process are multiplied by all, divided among the masters where any of them
// may be asked, and the bounds are where one master has no more to give.
func TestFleetReport(t *testing.T) {
	f := fleet{
		callers: []int{8}, connections: []float64{5}, connect: price{micros: 100}, idle: 20_000,
		topology: price{micros: 60}, fields: []int{10, 1000}, polls: []price{{micros: 50, out: 2000}, {micros: 500, out: 60_000}},
	}
	var out bytes.Buffer
	f.report(&out, plan{Processes: 500, Shards: 10})
	for _, want := range []string{
		"| connections, callers at a time in a process: 8 | 5.0 | 2500 | 2000 processes |",
		"| connections, Redis far away: the most | 16 | 8000 | 625 processes |",
		"| memory of a connection | 20 kB | 10 MB | - |",
		"| all connect at once, after a failover | 100 µs | 50 ms | - |",
		"| topology, each 60 s | 60 µs | 0.005 % | 10000000 processes |",
		"| all ask for the topology at once, after a failover | 60 µs | 3 ms | - |",
		"| 1000 overrides, each second, of the master that has them | 500 µs, 60 kB | 25 %, 30 MB/s | 2000 processes |",
		"x-axis \"processes\" [100, 200, 300, 400, 500]",
		"line [0.5, 1.0, 1.5, 2.0, 2.5]",
		"line [5.0, 10.0, 15.0, 20.0, 25.0]",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
