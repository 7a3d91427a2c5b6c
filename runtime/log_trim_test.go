package runtime_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
)

// trims is how many events more than it adds a charge removes at most.
const trims = 128

// TestTrimInPieces lets most of a long log leave at once, and wants every charge
// to remove a bounded piece of that, more than it adds, until it is gone: while
// nothing of it counts.
func TestTrimInPieces(t *testing.T) {
	t.Parallel()
	const max, gone, window = 40_000, 25_000, time.Second
	client := redistest.Start(t).Client(t)
	for name, rule := range logRules(window, max) {
		if rule.Storage == runtime.StoragePacked {
			continue // which has TestPackedTrim
		}
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			longer := *rule
			longer.Window = time.Hour // counts what is stored
			log.fill(rule, gone)
			log.subject.Advance(window / 2)
			log.fill(rule, 3)
			log.subject.Advance(window / 2)
			inside, before := int64(3), log.stored(rule)
			for cost := int64(1); before > inside; cost = cost*7%runtime.MaxLogCost + 1 {
				if max-inside < cost {
					t.Fatalf("%d events have not gone when the log is full", before-inside)
				}
				inside += cost
				log.take(rule, cost, max-inside)
				after := log.stored(rule)
				if removed := before + cost - after; removed > cost+trims || removed <= cost && after > inside && cost > 16 {
					t.Fatalf("cost %d: %d of %d events were removed, %d are stored", cost, removed, before, after)
				}
				log.peek(&longer, runtime.MaxLogCost)
				before = after
			}
		})
	}
}

// TestPeakOfSmallCalls has a limit that was used up once be used a little, and
// wants what is stored of it to become little too.
func TestPeakOfSmallCalls(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	max, calls := effort.Choose[int64](3_000, 10_000), effort.Choose(510, 1700)
	for _, gap := range []time.Duration{time.Millisecond, 17 * time.Microsecond, 0} {
		for name, rule := range logRules(time.Second, max) {
			t.Run(fmt.Sprint(name, " ", gap), func(t *testing.T) {
				log := newLog(t, client, rule)
				rule := *rule
				rule.Resolution = min(rule.Resolution, time.Millisecond)
				log.fill(&rule, max-1)
				log.subject.Advance(rule.Window / 2)
				log.fill(&rule, 1)
				log.subject.Advance(rule.Window / 2)
				inside := int64(0)
				for range calls {
					log.subject.Advance(gap)
					r := log.decide(rawstore.Store.Take, &rule, 1)
					inside = rule.Max - r.Remaining
				}
				if n := log.stored(&rule); n > inside+200 {
					t.Errorf("%d events are stored, of which %d are in the window", n, inside)
				}
			})
		}
	}
}
