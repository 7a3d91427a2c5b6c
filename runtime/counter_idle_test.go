package runtime_test

import (
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rawstore"
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
				log.decide(rawstore.Store.Take, rule, 1)
				log.subject.Advance(10 * time.Millisecond)
			}
			last := log.decide(rawstore.Store.Take, rule, 1)
			log.subject.Advance(last.ResetAfter) // when Redis keeps the key for a little longer
			commands := log.commands(func() { log.take(rule, 1, 99) })
			if commands["set"] != 1 {
				t.Errorf("commands %v, want one SET", commands)
			}
			if n := client.StrLen(t.Context(), log.key).Val(); n != 50 {
				t.Errorf("%d bytes, want those of one bucket", n)
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
			leaves := log.decide(rawstore.Store.Take, rule, 1).RetryAfter
			log.subject.Advance(leaves - time.Microsecond)
			if r := log.peek(rule, 1); r.Allowed {
				t.Errorf("a microsecond before it leaves: %+v", r)
			}
			log.subject.Advance(time.Microsecond)
			log.take(rule, 1, 59)
		})
	}
}

// TestForeignNumbers damages states of numbers, and wants an error and no change.
func TestForeignNumbers(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(time.Hour, 100) {
		if rule.Algorithm == runtime.SlidingLog || rule.Algorithm == runtime.Concurrency {
			continue
		}
		t.Run(name, func(t *testing.T) {
			log := newLog(t, client, rule)
			pause := time.Second
			if rule.Algorithm == runtime.SlidingCounter {
				pause = 20 * time.Minute // several buckets
			}
			for range 3 {
				log.decide(rawstore.Store.Take, rule, 1)
				log.subject.Advance(pause)
			}
			whole := client.Get(t.Context(), log.key).Val()
			for _, value := range []string{"", "\x01", "\x05" + whole[1:], whole[:20], whole[:len(whole)-1], whole[:len(whole)-7], whole + "\x00"} {
				client.Set(t.Context(), log.key, value, 0)
				calls := single(rule, log.key, 1)
				if err := rawstore.On(log.subject.Store).Take(t.Context(), calls); err != nil {
					t.Fatal(err)
				}
				if runtime.ClassOf(calls[0].Err) != runtime.ClassWrongType || client.Get(t.Context(), log.key).Val() != value {
					t.Errorf("%x: got %+v, %v", value, calls[0].Charges[0].Result, calls[0].Err)
				}
			}
		})
	}
}

// TestRaisedKeyLives charges a key by a longer window than before, and wants it to live
// for as long as that.
func TestRaisedKeyLives(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for name, rule := range serverRules(time.Second, 100) {
		if rule.Algorithm != runtime.SlidingCounter && rule.Algorithm != runtime.FixedWindow {
			continue
		}
		log := newLog(t, client, rule)
		log.key += name
		log.take(rule, 1, 99)
		longer := *rule
		longer.Window *= 10
		log.take(&longer, 1, 98)
		if lives := expireTime(t.Context(), client, log.key) - time.Duration(log.subject.Now())*time.Microsecond; lives < longer.Window {
			t.Errorf("%s: expires in %v, want at least %v", name, lives, longer.Window)
		}
	}
}
