package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rategen/rategen/bench/internal/judge"
	"github.com/rategen/rategen/bench/internal/server"
	"github.com/rategen/rategen/internal/progress"
)

// A report runs algorithms and prints a line about each.
type report struct {
	sum     judge.Result
	elapsed time.Duration
	missed  []string // controls in which nothing was found
	notes   []string
	line    *progress.Line
	steps   int // runs so far
}

func newReport(c config) *report {
	r := &report{line: progress.New(os.Stderr)}
	fmt.Printf("%d processes, %d keys\n\n", c.processes, c.keys)
	fmt.Printf("%-17s %10s %10s %10s %8s %8s %8s %12s\n",
		"algorithm", "decisions", "admitted", "refused", "over", "spurious", "wrong", "decisions/s")
	return r
}

// run runs one algorithm on a server of its own, and prints what is found.
func (r *report) run(ctx context.Context, name string, c config) error {
	r.line.Show("run %d: %s", r.steps+1, name)
	r.steps++
	defer r.line.Clear()
	redis, err := server.Start()
	if err != nil {
		return err
	}
	defer redis.Stop()
	begin := time.Now()
	files, err := hammer(ctx, name, c, redis)
	if err != nil {
		return err
	}
	elapsed := time.Since(begin)
	if r.notes == nil {
		r.notes = []string{redis.Product()}
	}
	result, err := judged(ctx, redis, name, newLimits(name, c), files)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if algorithms[name].history != nil {
		scripts, err := redis.Calls(ctx, "evalsha")
		if err != nil {
			return err
		}
		r.notes = append(r.notes, fmt.Sprintf("%s: %d decisions, %d of them refusals that were recalled, by %d scripts",
			name, result.Decisions, result.Recalled, scripts))
		if result.Recalled == 0 || scripts*2 > result.Decisions-result.Recalled {
			return fmt.Errorf("%s: %d decisions, %d of them recalled, by %d scripts: calls did not share batches, which is to be checked",
				name, result.Decisions, result.Recalled, scripts)
		}
	}
	r.line.Clear()
	r.row(name, result, elapsed)
	for _, note := range result.Notes {
		r.notes = append(r.notes, name+": "+note)
	}
	if controls[name] == 0 {
		r.sum.Add(result)
		r.elapsed += elapsed
	} else if !result.Has(controls[name]) {
		r.missed = append(r.missed, name)
	}
	if result.First != nil {
		rule := newLimits(name, c)[result.First.Limit].rule
		r.notes = append(r.notes, fmt.Sprintf("%s: the first fault is %+v, of max %d in %v",
			name, *result.First, rule.Max, rule.Window))
	}
	if result.Backwards > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%s: the clock of Redis stepped back %d times", name, result.Backwards))
	}
	return nil
}

// judged judges the decisions in files.
func judged(ctx context.Context, redis *server.Server, name string, limits []limit, files []string) (*judge.Result, error) {
	if algorithms[name].streams {
		return judgeStreams(ctx, redis, limits, files)
	}
	a := algorithms[name]
	if a.history != nil || a.leased {
		records, err := judge.Read[judge.SharedRecord](files...)
		if err != nil {
			return nil, err
		}
		if a.leased {
			return sweepLeased(limits, records)
		}
		return proven(sharedTampers, records, func(records []judge.SharedRecord) (*judge.Result, error) {
			return judge.SweepShared(a.history, rulesOf(limits), records), nil
		})
	}
	records, err := judge.Read[judge.Record](files...)
	if err != nil {
		return nil, err
	}
	if a.settled {
		return sumSettled(ctx, redis, limits, records)
	}
	sweep := func(records []judge.Record) (*judge.Result, error) {
		return judge.Sweep(a.check, rulesOf(limits), records)
	}
	result, err := proven(tampers, records, sweep)
	if err == nil {
		err = proveLost(records, sweep)
	}
	return result, err
}

// hammer runs the processes and returns the files with their records.
func hammer(ctx context.Context, name string, c config, redis *server.Server) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var files []string
	var commands []*exec.Cmd
	for i := range c.processes {
		file := filepath.Join(redis.Dir, strconv.Itoa(i))
		cmd := exec.CommandContext(ctx, program,
			"-worker", redis.Addr, "-output", file,
			"-algorithms", name, "-keys", strconv.Itoa(c.keys),
			"-processes", strconv.Itoa(c.processes),
			"-decisions", strconv.Itoa(c.decisions), "-duration", c.duration.String())
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		files, commands = append(files, file), append(commands, cmd)
	}
	if c.freeze > 0 {
		freezing, stop := context.WithCancel(ctx)
		var done sync.WaitGroup
		done.Go(func() { redis.Freeze(freezing, c.freeze) })
		defer done.Wait()
		defer stop()
	}
	var failed error
	for i, cmd := range commands {
		if err := cmd.Start(); err != nil {
			failed, commands = err, commands[:i]
			break
		}
	}
	t := tormentor{stops: 3, longest: 1200 * time.Millisecond}
	if algorithms[name].streams { // which hold nothing for longer than streamReserve
		t = tormentor{stops: c.decisions / 20_000, longest: streamReserve / 8}
	}
	if algorithms[name].leased || algorithms[name].streams {
		defer t.start(ctx, commands)()
	}
	for _, cmd := range commands {
		if err := cmd.Wait(); err != nil && !t.wasKilled(cmd.Process) {
			failed = fmt.Errorf("a process failed: %w", err)
		}
	}
	return files, failed
}

func (r *report) row(name string, s *judge.Result, elapsed time.Duration) {
	fmt.Printf("%-17s %10d %10d %10d %8d %8d %8d %12.0f\n", name,
		s.Decisions, s.Admitted, s.Decisions-s.Admitted, s.Over, s.Spurious, s.Wrong,
		float64(s.Decisions)/elapsed.Seconds())
}

// verdict prints what all of it means, and reports whether it is good.
func (r *report) verdict() bool {
	fmt.Printf("\n%s\n", strings.Join(r.notes, "\n"))
	switch {
	case len(r.missed) > 0:
		fmt.Printf("FAIL: %s was not found out, so the sweep proves nothing\n", strings.Join(r.missed, ", "))
	case !r.sum.OK():
		fmt.Println("FAIL")
	default:
		fmt.Println("ok: no decision was over, spurious or wrong, and the controls were found out")
	}
	return len(r.missed) == 0 && r.sum.OK()
}
