package documents

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redisclock"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/redis"
	"github.com/rategen/rategen/runtime/wrapper"
)

// The bucket of TestSharesOfProcesses, and who asks for how much of it.
const (
	sharers       = 8 // processes
	sharingCount  = 200
	sharingWindow = time.Second
	sharingPhases = 2
	sharingPhase  = 10 * sharingWindow // in which demands stay as they are
	sharingTrip   = time.Millisecond   // to Redis and back
	sharingMax    = 2000
	sharingBurst  = 1600
	sharingDemand = 4000 // events a second of all
)

// A sharing tenant has a weight, and calls of a cost.
func weightOf(tenant int) int64 { return int64(1 + tenant%3) }
func costOf(tenant int) int64   { return int64(1 + 2*(tenant%2)) }

// demandOf returns how many events a second a tenant asks for in a phase: by the law of Zipf, and in each phase
// others ask most.
func demandOf(tenant, phase int) float64 {
	all := 0.0
	for i := range sharingCount {
		all += 1 / float64(i+1)
	}
	rank := (tenant + 67*phase) % sharingCount
	return sharingDemand / all / float64(rank+1)
}

// A sharing is what processes have seen: events that tenants asked for and got, by phase, and in the first two
// windows of that or later.
type sharing struct {
	mu              sync.Mutex
	asked, admitted [sharingPhases][2][sharingCount]int64
}

// TestSharesOfProcesses has eight processes share a bucket for two hundred tenants, on a Redis whose time is the
// test's. All of it is used and no more, those who want more than there is get as much by their weights two
// windows after others want most, and who wants less than a third of that gets it all.
func TestSharesOfProcesses(t *testing.T) {
	server := redistest.Start(t)
	clock := redisclock.NewServer(t, server.Client(t))
	redis.ForgetWaiters()
	t.Cleanup(redis.ForgetWaiters)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2126, time.January, 1, 0, 0, 0, 0, time.UTC))) // where the server never is
		var all sharing
		var group sync.WaitGroup
		for process := range int64(sharers) {
			client := &redisclock.Client{Server: clock, Trip: func(_ context.Context, ask func() error) error {
				time.Sleep(sharingTrip / 2)
				err := ask()
				time.Sleep(sharingTrip / 2)
				return err
			}}
			store := wrapper.NewRedisStore(client, runtime.WithTimeout(time.Second))
			group.Go(func() { all.ask(t, runtime.New(store, limittest.Quiet), process) })
			defer store.Close()
		}
		group.Wait()
		all.judge(t)
	})
}

// ask makes the calls of one process.
func (s *sharing) ask(t *testing.T, limiter *runtime.Limiter, process int64) {
	defer limiter.Close()
	rule := &runtime.Rule{Name: "shared", Window: sharingWindow, Max: sharingMax, Burst: sharingBurst, Algorithm: runtime.TokenBucket, Headroom: -1}
	begin := time.Now()
	var made [sharingPhases][sharingCount]int64 // calls of all processes
	for {
		passed := time.Since(begin)
		if passed >= sharingPhases*sharingPhase {
			return
		}
		phase, settled := int(passed/sharingPhase), 0
		if passed%sharingPhase >= 2*sharingWindow {
			settled = 1
		}
		var limits []runtime.Limit
		var of []int
		for tenant := range sharingCount {
			due := demandOf(tenant, phase) / float64(costOf(tenant)) * (passed % sharingPhase).Seconds()
			for n := &made[phase][tenant]; float64(*n) < due; *n++ {
				if (*n+int64(tenant))%sharers != process {
					continue // another process has the call
				}
				limits = append(limits, rule.Limit(nil).WithShare(runtime.NewKey().AddInt(int64(tenant)), weightOf(tenant)).WithCost(costOf(tenant)))
				of = append(of, tenant)
			}
		}
		outcomes := limiter.TakeEach(t.Context(), limits...)
		s.mu.Lock()
		for i, out := range outcomes {
			s.asked[phase][settled][of[i]] += costOf(of[i])
			if out.Err == nil {
				s.admitted[phase][settled][of[i]] += costOf(of[i])
			}
		}
		s.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
}

// judge holds what all processes have seen against what is promised.
func (s *sharing) judge(t *testing.T) {
	t.Helper()
	rate, total := float64(sharingMax)/sharingWindow.Seconds(), int64(0)
	for p := range sharingPhases {
		level := 0.0 // by weight, up to which demands are met
		for step := rate; step > 1e-3; step /= 2 {
			met := 0.0
			for i := range sharingCount {
				met += min(demandOf(i, p), (level+step)*float64(weightOf(i)))
			}
			if met <= rate {
				level += step
			}
		}
		n, each, squares, asked, refused := 0, 0.0, 0.0, int64(0), int64(0)
		for i := range sharingCount {
			total += s.admitted[p][0][i] + s.admitted[p][1][i]
			fair := level * float64(weightOf(i))
			if demandOf(i, p) > 1.5*fair {
				x := float64(s.admitted[p][1][i]) / float64(weightOf(i))
				n, each, squares = n+1, each+x, squares+x*x
			} else if demandOf(i, p) < fair/3 {
				asked, refused = asked+s.asked[p][1][i], refused+s.asked[p][1][i]-s.admitted[p][1][i]
			}
		}
		jain := each * each / (float64(n) * squares)
		t.Logf("phase %d: Jain's index of %d tenants that want more is %.4f, and light ones were refused %d of %d events", p, n, jain, refused, asked)
		if n < 10 || jain < 0.995 {
			t.Errorf("phase %d: Jain's index of %d tenants that want more than there is is %.4f", p, n, jain)
		}
		if asked == 0 || float64(refused) > 0.005*float64(asked) {
			t.Errorf("phase %d: of %d events of light tenants %d were refused", p, asked, refused)
		}
	}
	drains := rate * (sharingPhases * sharingPhase).Seconds()
	t.Logf("%d events were admitted, where %.0f drain", total, drains)
	if float64(total) < drains || float64(total) > drains+sharingBurst {
		t.Errorf("%d events were admitted, where %.0f drain and %d are a burst", total, drains, sharingBurst)
	}
}
