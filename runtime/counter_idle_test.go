package runtime_test

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestIdleCounter has a call find a counter of which all buckets have left, and
// wants it to be dropped as a whole.
func TestIdleCounter(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(time.Second, 100) {
		if rule.Algorithm != runtime.SlidingCounter {
			continue
		}
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			for range 50 {
				log.decide(runtime.Store.Take, rule, 1)
				log.subject.Advance(10 * time.Millisecond)
			}
			last := log.decide(runtime.Store.Take, rule, 1)
			log.subject.Advance(last.ResetAfter) // when Redis keeps the key for a little longer
			commands := log.commands(func() { log.take(rule, 1, 99) })
			if commands["unlink"] != 1 || commands["hkeys"]+commands["hdel"] != 0 {
				t.Errorf("commands %v, want one UNLINK and nothing else that removes", commands)
			}
			if n := client.HLen(t.Context(), log.key).Val(); n > 3 {
				t.Errorf("%d fields, want those of one charge", n)
			}
		})
	}
}

// TestCounterEdge lets one of two buckets leave, to the microsecond.
func TestCounterEdge(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(time.Second, 100) {
		if rule.Algorithm != runtime.SlidingCounter {
			continue
		}
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			log.take(rule, 60, 40)
			log.subject.Advance(300 * time.Millisecond)
			log.take(rule, 40, 0)
			leaves := log.decide(runtime.Store.Take, rule, 1).RetryAfter
			log.subject.Advance(leaves - time.Microsecond)
			if r := log.peek(rule, 1); r.Allowed {
				t.Errorf("a microsecond before it leaves: %+v", r)
			}
			log.subject.Advance(time.Microsecond)
			log.take(rule, 1, 59)
		})
	}
}
