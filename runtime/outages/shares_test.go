package outages

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// The bucket of TestSharesOfProcesses, and who asks for how much of it.
const (
	sharers       = 8 // processes
	sharingCount  = 200
	sharingWindow = time.Second
	sharingPhases = 2
	sharingPhase  = 10 * sharingWindow // in which demands stay as they are
	sharingMax    = 2000
	sharingBurst  = 1600
	sharingDemand = 4000 // events a second of all
)

func sharingRule() *runtime.Rule {
	return &runtime.Rule{Name: "shared", Window: sharingWindow, Max: sharingMax, Burst: sharingBurst, Algorithm: runtime.TokenBucket, Headroom: -1}
}

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

// A sharing is what a process has seen: events that tenants asked for and got, by phase, and in the first two
// windows of that or later, and how long after the begin it made its last call.
type sharing struct {
	Asked, Admitted [sharingPhases][2][sharingCount]int64
	Last            time.Duration
}

// A busy machine stops a process for a while. Demands that a process could not make in more than sharingStop are
// not made later: all of them at once would be another demand than the one that is judged.
const sharingStop = sharingWindow / 10

// TestProcessThatShares is one of the processes of TestSharesOfProcesses.
func TestProcessThatShares(t *testing.T) {
	limiter, client := childsLimiter(t), redis.NewClient(&redis.Options{Addr: os.Getenv(childsRedis)})
	fmt.Println("ready")
	start, err := client.BLPop(t.Context(), time.Minute, "start").Result()
	ok(t, err)
	var process int64
	var micros int64
	_, err = fmt.Sscan(start[1], &process, &micros)
	ok(t, err)
	begin, rule := time.UnixMicro(micros), sharingRule()
	var seen sharing
	var made [sharingPhases][sharingCount]int64 // calls of all processes
	var ran, last [sharingPhases]time.Duration  // in a phase: for how long calls were made, and until when
	time.Sleep(time.Until(begin))
	for {
		passed := time.Since(begin)
		if passed >= sharingPhases*sharingPhase {
			break
		}
		phase := int(passed / sharingPhase)
		ran[phase] += min(passed%sharingPhase-last[phase], sharingStop)
		last[phase] = passed % sharingPhase
		settled := 0
		if passed%sharingPhase >= 2*sharingWindow {
			settled = 1
		}
		var limits []runtime.Limit
		var of []int
		for tenant := range sharingCount {
			due := demandOf(tenant, phase) / float64(costOf(tenant)) * ran[phase].Seconds()
			for n := &made[phase][tenant]; float64(*n) < due; *n++ {
				if (*n+int64(tenant))%sharers != process {
					continue // another process has the call
				}
				limits = append(limits, rule.Limit(nil).WithShare(runtime.NewKey().AddInt(int64(tenant)), weightOf(tenant)).WithCost(costOf(tenant)))
				of = append(of, tenant)
			}
		}
		for i, out := range limiter.TakeEach(t.Context(), limits...) {
			tenant := of[i]
			seen.Asked[phase][settled][tenant] += costOf(tenant)
			if out.Err == nil {
				seen.Admitted[phase][settled][tenant] += costOf(tenant)
			}
		}
		seen.Last = time.Since(begin)
		time.Sleep(5 * time.Millisecond)
	}
	text, _ := json.Marshal(seen)
	fmt.Println(string(text))
}

// TestSharesOfProcesses has eight processes share a bucket for two hundred tenants. All of it is used and no
// more, those who want more than there is get as much by their weights two windows after others want most, and
// who wants less than half of that gets it all.
func TestSharesOfProcesses(t *testing.T) {
	fullOnly(t)
	server := redistest.Start(t)
	client := server.Client(t)
	results := make(chan sharing, sharers)
	ready := make(chan error, sharers)
	for range sharers {
		out, _ := child(t, "TestProcessThatShares", server)
		go func() {
			var seen sharing
			_, err := out.ReadString('\n')
			ready <- err
			text, _ := out.ReadString('\n')
			_ = json.Unmarshal([]byte(text), &seen)
			results <- seen
		}()
	}
	for range sharers {
		ok(t, <-ready)
	}
	begin := time.Now().Add(100 * time.Millisecond)
	for process := range sharers {
		ok(t, client.RPush(t.Context(), "start", fmt.Sprint(process, " ", begin.UnixMicro())).Err())
	}
	var sum sharing
	for range sharers {
		seen := <-results
		sum.Last = max(sum.Last, seen.Last)
		for p := range sharingPhases {
			for s := range 2 {
				for i := range sharingCount {
					sum.Asked[p][s][i] += seen.Asked[p][s][i]
					sum.Admitted[p][s][i] += seen.Admitted[p][s][i]
				}
			}
		}
	}
	sum.judge(t)
}

// judge holds what all processes have seen against what is promised.
func (s *sharing) judge(t *testing.T) {
	t.Helper()
	rate, total, all := float64(sharingMax)/sharingWindow.Seconds(), int64(0), int64(0)
	for p := range sharingPhases {
		demand := func(tenant int) float64 { // events a second
			return float64(s.Asked[p][1][tenant]) / (sharingPhase - 2*sharingWindow).Seconds()
		}
		level := 0.0 // by weight, up to which demands are met
		for step := rate; step > 1e-3; step /= 2 {
			met := 0.0
			for i := range sharingCount {
				met += min(demand(i), (level+step)*float64(weightOf(i)))
			}
			if met <= rate {
				level += step
			}
		}
		n, each, squares, asked, refused := 0, 0.0, 0.0, int64(0), int64(0)
		for i := range sharingCount {
			total += s.Admitted[p][0][i] + s.Admitted[p][1][i]
			all += s.Asked[p][0][i] + s.Asked[p][1][i]
			fair := level * float64(weightOf(i))
			if demand(i) > 1.5*fair {
				x := float64(s.Admitted[p][1][i]) / float64(weightOf(i))
				n, each, squares = n+1, each+x, squares+x*x
			} else if demand(i) < fair/3 {
				asked, refused = asked+s.Asked[p][1][i], refused+s.Asked[p][1][i]-s.Admitted[p][1][i]
			}
		}
		jain := each * each / (float64(n) * squares)
		t.Logf("phase %d: Jain's index of %d tenants that want more is %.4f, and light ones were refused %d of %d events", p, n, jain, refused, asked)
		if n < 10 || jain < 0.99 {
			t.Errorf("phase %d: Jain's index of %d tenants that want more than there is is %.4f", p, n, jain)
		}
		if asked == 0 || float64(refused) > 0.01*float64(asked) {
			t.Errorf("phase %d: of %d events of light tenants %d were refused", p, asked, refused)
		}
	}
	whole := rate * s.Last.Seconds() // what drains
	t.Logf("%d of %.0f events were admitted", total, whole)
	// The burst that is there at the start makes up for what drains while nobody asks.
	if least := min(rate*(sharingPhases*sharingPhase).Seconds(), float64(all)); float64(total) < 0.99*least || float64(total) > whole+sharingBurst {
		t.Errorf("%d events were admitted of %d, where %.0f drain and %d are a burst", total, all, whole, sharingBurst)
	}
}
