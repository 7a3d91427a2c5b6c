package crossing

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	_ "github.com/rategen/rategen/internal/testkit/seed" // rapid begins there
	"github.com/rategen/rategen/internal/testkit/steppedclock"
)

var memoryScope = &scope{
	window: time.Second, steps: 30, leases: true, jumps: true,
	faults: []fault{slow, frozen, down, lost},
}

var promise = flag.String("promise", "", "judge only what contradicts promises that match a regular expression, or with a ! before it those that do not")

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("12") // they wait most of the time
	}
	limittest.Run(m) // each test says how many programs it tries
}

// try sets how many programs a test tries, unless the command line says so.
func try(t *testing.T, quick, full int) {
	set(t, "rapid.checks", effort.Choose(quick, full))
}

// set sets a flag for a test, unless the command line does.
func set(t *testing.T, name string, value int) {
	if f := flag.Lookup(name); f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.Itoa(value))
		t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	}
}

// TestMemory runs programs on a store in memory. They are the same ones each time, unless
// the command line says by -rapid.seed where to begin.
func TestMemory(t *testing.T) {
	try(t, effort.ChooseMore(500, effort.Few(1500)), 20_000)
	rapid.Check(t, func(t *rapid.T) {
		p := memoryScope.draw(t)
		var h *history
		rapid.SyncTest(t, func(*rapid.T) { h = run(p, memoryScope, newMemory(p)) })
		report(t, h)
	})
}

var wireScope = &scope{
	window: time.Second, steps: 20, leases: true, far: true,
	faults: []fault{slow, frozen, down, lost, flushed, killed},
}

// TestWire runs programs on a Redis that is far away.
func TestWire(t *testing.T) {
	try(t, effort.ChooseMore(40, effort.Few(240)), 5000)
	server := newFarServer(t)
	defer emptyPools() // the tests after it are in no bubble
	rapid.Check(t, func(t *rapid.T) {
		p := wireScope.draw(t)
		var h *history
		emptyPools()
		rapid.SyncTest(t, func(*rapid.T) {
			w := newWire(p, server)
			h = run(p, wireScope, w)
			w.close()
		})
		report(t, h)
	})
}

var redisScope = &scope{
	window: 300 * time.Millisecond, steps: 12, leases: true, real: true,
	faults: []fault{slow, frozen, down, lost, flushed, forbidden, killed},
}

// TestRedis runs programs on one Redis, some at the same time on servers of their own.
func TestRedis(t *testing.T) {
	try(t, 2, 30)
	for lane := range effort.Choose(1, 12) {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			t.Parallel()
			runReal(t, oneRedis(t), redisScope, lane)
		})
	}
}

var steppedScope = &scope{
	window: 300 * time.Millisecond, steps: 12, leases: true, real: true, jumps: true,
	faults: []fault{slow, frozen, lost, flushed},
}

// TestSteppedClock runs programs on a Redis whose clock is set forward and back.
func TestSteppedClock(t *testing.T) {
	try(t, 1, 30)
	clock := steppedclock.New(t)
	fleet := oneRedis(t)
	fleet.clock = clock
	runReal(t, fleet, steppedScope, 0)
}

var clusterScope = &scope{
	window: 300 * time.Millisecond, steps: 12, leases: true, real: true,
	faults: []fault{slow, frozen, down, lost, flushed, forbidden, moved},
}

// TestCluster runs programs on a cluster.
func TestCluster(t *testing.T) {
	if !effort.More() {
		t.Skip("waits for a cluster")
	}
	try(t, 2, 50)
	runReal(t, oneCluster(t), clusterScope, 0)
}

// runReal runs programs on real servers. Those of each lane are others, though all begin at one seed.
func runReal(t *testing.T, fleet *redisFleet, s *scope, lane int) {
	rapid.Check(t, func(t *rapid.T) {
		for range lane {
			rapid.Bool().Draw(t, "lane")
		}
		p, w := s.draw(t), fleet.world()
		w.hasty, w.one = p.Hasty, p.OneClient
		defer w.close()
		report(t, run(p, s, w))
	})
}

// emptyPools empties all pools: what waits for Redis is used again, and no bubble may use a
// channel of another one.
func emptyPools() {
	for range 2 { // what the first leaves the second takes
		goruntime.GC()
	}
}

// programs is how many have run, in all lanes.
var programs atomic.Int64

// report fails a test if a history contradicts what is documented. The history is then a document in
// testdata/rapid, which is a test when it is moved to runtime/testdata/limiter, with the right answers.
func report(t *rapid.T, h *history) {
	number := programs.Add(1)
	matcher := regexp.MustCompile(strings.TrimPrefix(*promise, "!"))
	found := slices.DeleteFunc(judge(h), func(text string) bool {
		return matcher.MatchString(text) == strings.HasPrefix(*promise, "!")
	})
	if len(found) > 0 {
		file := filepath.Join("testdata", "rapid", filepath.Base(t.Name())+".txt")
		if flag.Lookup("rapid.nofailfile").Value.String() == "false" {
			_ = os.MkdirAll(filepath.Dir(file), 0o755)
			_ = os.WriteFile(file, []byte(h.String()), 0o644)
		}
		t.Fatalf("%s\n\nprogram %d:\n%v", strings.Join(found, "\n"), number, h)
	}
}
