package main

import (
	"fmt"
	"io"
	"time"
)

// report prints what a simulation has found.
func (s *simulation) report(out io.Writer) {
	seconds := s.For.Seconds()
	calls := 0
	for _, n := range s.judge.results {
		calls += n
	}
	share := func(n int) float64 { return 100 * float64(n) / float64(max(1, calls)) }
	fmt.Fprintf(out, "%d processes, %d shards, %d keys, max %d in %v, lease %v; a request costs %.1f µs of Redis and %.1f µs a key\n",
		s.Processes, s.Shards, s.Keys, s.Max, s.Window, s.Lease, s.Cost.Trip, s.Cost.Key)
	fmt.Fprintf(out, "%d calls in %v: %.1f %% admitted, %.1f %% refused, %.2f %% undecided; %.1f %% without a request; p50 %v, p99 %v\n\n",
		calls, s.For, share(s.judge.results[admitted]), share(s.judge.results[refused]), share(s.judge.results[undecided]),
		share(s.judge.local), s.judge.took.Quantile(0.5).Round(time.Microsecond), s.judge.took.Quantile(0.99).Round(time.Microsecond))
	fmt.Fprint(out, "| shard | busy | requests a second | keys a request |\n|---|---:|---:|---:|\n")
	for i, shard := range s.shards {
		name := fmt.Sprint(i)
		if i == s.Fails {
			name += fmt.Sprintf(", stops at %v for %v", shard.stops, shard.goesOn-shard.stops)
		}
		fmt.Fprintf(out, "| %s | %.0f %% | %.0f | %.1f |\n", name, 100*shard.busy.Seconds()/seconds,
			float64(shard.requests)/seconds, float64(shard.keys)/float64(max(1, shard.requests)))
	}
	fmt.Fprint(out, "\n| keys | most calls in one window | over max | refused while there was room |\n|---|---:|---:|---:|\n")
	for _, group := range []struct {
		name  string
		there bool
		of    func(int) bool
	}{
		{"of shards that answer", true, func(key int) bool { return s.shardOf(key) != s.Fails }},
		{"of the shard that stops", s.Fails >= 0, func(key int) bool { return s.shardOf(key) == s.Fails }},
	} {
		if !group.there {
			continue
		}
		v := s.judge.verdictOf(group.of)
		fmt.Fprintf(out, "| %s | %d | %+.1f %% | %.2f %% of %d |\n", group.name, v.most,
			100*float64(max(0, v.most-s.Max))/float64(s.Max), 100*float64(v.needless)/float64(max(1, v.refused)), v.refused)
	}
}
