package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rategen/rategen/bench/internal/trial"
	"github.com/rategen/rategen/internal/progress"
	"github.com/rategen/rategen/internal/testkit/faultproxy"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// A director starts the servers and processes, has faults happen, and judges round
// after round.
type director struct {
	config
	servers
	line    *progress.Line
	file    string // of the overrides
	start   time.Time
	number  uint16 // of the next process
	faults  int    // that have happened
	visits  int
	kills   int
	resided *child
	present []*child // processes that may tell something yet

	mu      sync.Mutex
	entries map[uint32][]entry // by round
	over    map[uint32]map[uint16]report
}

// A child is a process that makes calls.
type child struct {
	number uint16
	cmd    *exec.Cmd
	errors bytes.Buffer
	killed bool
	done   chan struct{}
	err    error
}

// begin starts the servers and the process that stays.
func (d *director) begin(ctx context.Context, t *trial.Trial) error {
	d.line.Show("starting a server and a cluster")
	d.Server = redistest.Start(t)
	d.proxy = faultproxy.Start(t, d.Server.Addr)
	d.cluster = redistest.StartCluster(t)
	// On a busy machine nodes may hear nothing of each other for a second.
	d.cluster.Configure(t, "cluster-node-timeout", "3000")
	d.file = filepath.Join(t.TempDir(), "overrides.json")
	d.entries, d.over = map[uint32][]entry{}, map[uint32]map[uint16]report{}
	if err := d.override(overridden); err != nil {
		return err
	}
	d.start = time.Now().Add(time.Second)
	var err error
	d.resided, err = d.spawn(ctx, 0, d.start.Add(time.Duration(d.rounds)*d.round), 0.5, true, d.profiles)
	return err
}

// override replaces the file of overrides.
func (d *director) override(max int64) error {
	text := fmt.Sprintf(`{"rules": {%q: {"max": %d}}}`, kinds[kindChanged].rule.Name, max)
	next := d.file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, d.file)
}

// spawn starts a process that makes a share of the calls, from a round on until it
// leaves.
func (d *director) spawn(ctx context.Context, first uint32, until time.Time, share float64, exact bool, profiles string) (*child, error) {
	text, err := json.Marshal(orders{
		Process: d.number, Standalone: d.proxy.Addr, Cluster: d.cluster.Addrs(), Overrides: d.file,
		Start: d.start, Round: d.round, Rounds: d.rounds, First: first, Until: until, Rate: d.rate * share, Exact: exact,
		Profiles: profiles,
	})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{number: d.number, cmd: exec.CommandContext(ctx, self, "-process", string(text)), done: make(chan struct{})}
	d.number++
	c.cmd.Stderr = &c.errors
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	d.present = append(d.present, c)
	go func() {
		defer close(c.done)
		err := readEntries(out, d.told)
		if c.err = c.cmd.Wait(); c.err == nil {
			c.err = err
		}
	}()
	return c, nil
}

func (d *director) told(e entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.What != over {
		d.entries[e.Round] = append(d.entries[e.Round], e)
		return
	}
	if d.over[e.Round] == nil {
		d.over[e.Round] = map[uint16]report{}
	}
	d.over[e.Round][e.Process] = e.report()
}

// await waits until every process has told all of a round, and returns what they
// told.
func (d *director) await(ctx context.Context, round uint32) ([]entry, report, error) {
	for _, c := range d.present {
		for !d.heard(round, c) {
			select {
			case <-c.done:
				if c.err != nil && !c.killed {
					return nil, report{}, fmt.Errorf("a process failed: %w\n%s", c.err, c.errors.Bytes())
				}
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				return nil, report{}, ctx.Err()
			}
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, self := d.entries[round], d.over[round][d.resided.number]
	delete(d.entries, round)
	delete(d.over, round)
	var present []*child
	for _, c := range d.present {
		select {
		case <-c.done:
		default:
			present = append(present, c)
		}
	}
	d.present = present
	return entries, self, nil
}

func (d *director) heard(round uint32, c *child) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.over[round][c.number]
	return ok
}

// visitors has processes come and go in a round, and kills one of them. It returns
// when they have been told to, with the time of the kill.
func (d *director) visitors(ctx context.Context, round uint32, begin time.Time) (killed []int64, err error) {
	length := calling(d.round)
	for range 2 {
		stay := length/4 + rand.N(length/2)
		if _, err := d.spawn(ctx, round, begin.Add(stay), 0.2, true, ""); err != nil {
			return nil, err
		}
		d.visits++
	}
	// Some of its last calls are unknown, so none of them is one to judge exactly.
	victim, err := d.spawn(ctx, round, begin.Add(2*d.round), 0.1, false, "")
	if err != nil {
		return nil, err
	}
	d.visits++
	sleepUntil(ctx, begin.Add(length/3+rand.N(length/3)))
	victim.killed = true
	_ = victim.cmd.Process.Signal(syscall.SIGKILL)
	<-victim.done
	d.kills++
	return []int64{time.Now().UnixMicro()}, nil
}

// end waits for the process that stayed, which fails if goroutines are left of it.
func (d *director) end(ctx context.Context) error {
	for _, c := range append(d.present, d.resided) {
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(30 * time.Second):
			return errors.New("a process does not end")
		}
		if c.err != nil && !c.killed {
			return fmt.Errorf("a process failed: %w\n%s", c.err, c.errors.Bytes())
		}
	}
	return nil
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// field returns what follows a name in its line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return value
		}
	}
	return ""
}
