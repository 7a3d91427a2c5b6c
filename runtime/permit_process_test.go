package runtime_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

const (
	permitProcess = "RATEGEN_TEST_PERMIT_PROCESS" // a permitSpec, for TestPermitProcess
	// longHold is the longest time of a call, in windows.
	longHold = 1.6
)

// A permitSpec says what a process of TestPermitProcesses does.
type permitSpec struct {
	Addrs   []string
	Cluster bool
	Seed    uint64
	Window  time.Duration
	Max     int64
	Renew   bool
}

func (s *permitSpec) client() redis.UniversalClient {
	if s.Cluster {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Addrs})
	}
	return redis.NewClient(&redis.Options{Addr: s.Addrs[0]})
}

func (s *permitSpec) limit() runtime.Limit {
	rule := &runtime.Rule{Name: "permits", Algorithm: runtime.Concurrency, Window: s.Window, Max: s.Max, Wait: s.Window / 4}
	return rule.Limit(key("k"))
}

// TestPermitProcess is no test but a process of TestPermitProcesses. It makes
// calls until its standard input ends, and prints a line when one begins and when
// it ends: "+" or "-", its number, its cost and the time. A line "!" says that the
// process did not run for too long a time.
func TestPermitProcess(t *testing.T) {
	text := os.Getenv(permitProcess)
	if text == "" {
		t.Skip("is a process of TestPermitProcesses")
	}
	var spec permitSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	client := spec.client()
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)), quiet, closed)
	if !spec.Renew {
		_ = limiter.Close()
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		_, _ = os.Stdout.WriteString(fmt.Sprintf(format, args...)) // one write: it is there even if the next moment kills
	}
	var calls atomic.Int64
	var wait sync.WaitGroup
	for caller := range uint64(3) {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(spec.Seed, caller))
			for ctx.Err() == nil {
				limit, cost := spec.limit(), 1+random.Int64N(2)
				limit = limit.WithCost(cost)
				d, err := limiter.Take(ctx, limit)
				if err != nil {
					if !errors.Is(err, runtime.ErrLimited) && !errors.Is(err, context.Canceled) {
						say("# %v\n", err)
					}
					continue
				}
				n := calls.Add(1)
				say("+ %d %d %d\n", n, cost, sinceBoot())
				hold := time.Duration(random.IntN(20)) * time.Millisecond
				if random.IntN(3) == 0 {
					hold = time.Duration(random.Float64() * longHold * float64(spec.Window))
				}
				time.Sleep(hold)
				say("- %d %d %d\n", n, cost, sinceBoot())
				if random.IntN(2) == 0 {
					_ = limiter.Settle(context.Background(), d, limit)
				} else {
					limiter.SettleLater(context.Background(), d, limit)
				}
			}
		})
	}
	wait.Go(func() {
		for last := time.Now(); ctx.Err() == nil; {
			time.Sleep(10 * time.Millisecond)
			now := time.Now()
			if now.Sub(last) > spec.Window/4 {
				say("!\n")
			}
			last = now
		}
	})
	wait.Wait()
	_ = limiter.Close()
}

// A heldFor is the time of a call of a process.
type heldFor struct {
	begin, end time.Duration // end 0: it has not ended
	cost       int64
}

// A runningProcess is a process of TestPermitProcesses, as its parent sees it.
type runningProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer

	mu      sync.Mutex
	calls   map[int64]*heldFor
	stalled bool
	strange []string
	done    chan struct{}
}

func startPermitProcess(t *testing.T, spec permitSpec) *runningProcess {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	p := &runningProcess{calls: map[int64]*heldFor{}, done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], "-test.run=^TestPermitProcess$", "-test.timeout=2m")
	p.cmd.Env = append(os.Environ(), permitProcess+"="+string(text))
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.read(lines.Text())
		}
	}()
	return p
}

func (p *runningProcess) read(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sign string
	var n, cost, at int64
	switch _, err := fmt.Sscanf(line, "%s %d %d %d", &sign, &n, &cost, &at); {
	case line == "!":
		p.stalled = true
	case line == "PASS" || line == "":
	case err != nil:
		p.strange = append(p.strange, line)
	case sign == "+":
		p.calls[n] = &heldFor{begin: time.Duration(at), cost: cost}
	default:
		p.calls[n].end = time.Duration(at)
	}
}

// holds reports whether a call of the process is under way.
func (p *runningProcess) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.end == 0 {
			return true
		}
	}
	return false
}

// kill kills the process in the middle of a call. Its calls end at a time when it
// still lived.
func (p *runningProcess) kill() time.Duration {
	for deadline := time.Now().Add(10 * time.Second); !p.holds() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	at := sinceBoot()
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.cmd.Wait()
	p.endAt(at)
	return at
}

// stop lets the process end its calls.
func (p *runningProcess) stop() error {
	_ = p.stdin.Close()
	<-p.done
	return p.cmd.Wait()
}

func (p *runningProcess) endAt(at time.Duration) {
	for _, c := range p.calls {
		if c.end == 0 {
			c.end = max(c.begin, at)
		}
	}
}

// mostAtOnce returns the largest cost of calls that were under way at one time.
func mostAtOnce(processes []*runningProcess) (most int64, calls int) {
	type change struct {
		at   time.Duration
		cost int64
	}
	var changes []change
	for _, p := range processes {
		for _, c := range p.calls {
			changes = append(changes, change{c.begin, c.cost}, change{c.end, -c.cost})
			calls++
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return int(a.cost - b.cost) // an end comes first
	})
	var now int64
	for _, c := range changes {
		now += c.cost
		most = max(most, now)
	}
	return most, calls
}

// permitProcesses has processes make calls for some windows, and kills some of
// them. It returns the most permits that were held at once.
func permitProcesses(t *testing.T, spec permitSpec, windows float64, kills int) (most int64, stalled bool) {
	t.Helper()
	client := spec.client()
	defer client.Close()
	limiter := runtime.New(runtime.NewRedisStore(client, runtime.WithTimeout(5*time.Second)), quiet, closed)
	if err := limiter.Reset(t.Context(), spec.limit()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	var processes []*runningProcess
	for i := range 8 {
		spec.Seed = spec.Seed*8 + uint64(i)
		processes = append(processes, startPermitProcess(t, spec))
	}
	pause := time.Duration(windows * float64(spec.Window) / float64(kills+1))
	time.Sleep(pause)
	var last time.Duration
	for i := range kills {
		last = processes[i].kill()
		time.Sleep(pause)
	}
	for _, p := range processes[kills:] {
		if err := p.stop(); err != nil {
			t.Errorf("a process failed: %v", err)
		}
	}
	for _, p := range processes {
		stalled = stalled || p.stalled
		for _, line := range p.strange {
			t.Errorf("a process said %q", line)
		}
	}
	// Redis may execute a last renewal of the dead some time after they died, on a
	// busy machine.
	const grace = 3 * time.Second
	for spec.Renew {
		got := left(t, limiter, spec.limit())
		if got == spec.Max {
			break
		}
		if late := sinceBoot() - last - spec.Window; late > grace {
			t.Errorf("%d of %d permits left %v later than a window after the last process died", got, spec.Max, late)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	most, calls := mostAtOnce(processes)
	t.Logf("%d calls, at most %d permits of %d at once, in %v", calls, most, spec.Max, time.Since(begin))
	return most, stalled
}

// TestPermitProcesses has eight processes hold permits for random times, some of
// them longer than the window, and kills some processes in the middle of calls.
// Never are more permits held than max, and those of the dead are free within a
// window. Without renewals the same calls hold too many, so the check would see
// it.
func TestPermitProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("runs test binaries")
	}
	t.Parallel()
	server := redistest.Start(t)
	testPermitProcesses(t, permitSpec{Addrs: []string{server.Addr}}, effort.Choose(1, 2))
}

// TestPermitProcessesOnCluster does so on a cluster.
func TestPermitProcessesOnCluster(t *testing.T) {
	if !effort.Full() {
		t.Skip("in a full run only")
	}
	t.Parallel()
	testPermitProcesses(t, permitSpec{Addrs: redistest.StartCluster(t).Addrs(), Cluster: true}, 1)
}

func testPermitProcesses(t *testing.T, spec permitSpec, rounds int) {
	spec.Window, spec.Max = effort.Choose(1200*time.Millisecond, 2*time.Second), 6
	for range rounds {
		for try := 0; ; try++ {
			spec.Seed, spec.Renew = rand.Uint64(), true
			most, stalled := permitProcesses(t, spec, effort.Choose(2.0, 6.0), effort.Choose(2, 5))
			if most <= spec.Max && most > spec.Max-2 {
				break
			}
			if most > spec.Max && !stalled {
				t.Fatalf("%d permits were held at once, want up to %d", most, spec.Max)
			}
			if try == 4 {
				t.Skip("this machine is too busy: processes stop for a quarter of the window, or make few calls")
			}
		}
	}
	spec.Renew = false
	for range 5 {
		if most, _ := permitProcesses(t, spec, effort.Choose(1.5, 4.0), 0); most > spec.Max {
			return
		}
	}
	t.Error("without renewals no more permits were held: the check proves nothing")
}
