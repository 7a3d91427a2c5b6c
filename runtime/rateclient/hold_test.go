package rateclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rateclient"
	"github.com/rategen/rategen/runtime/rule"
)

// TestHoldsOfAllMargins has one replica measure a margin and another not, which then share a key
// whatever they count by: its hold and its count.
func TestHoldsOfAllMargins(t *testing.T) {
	for name, r := range map[string]runtime.Rule{
		"log":     {},
		"equal":   {Algorithm: runtime.SlidingCounter},
		"layered": {Algorithm: runtime.SlidingCounter, Buckets: rule.LayeredBuckets(6, 10)},
		"fixed":   {Algorithm: runtime.FixedWindow},
		"bucket":  {Algorithm: runtime.TokenBucket},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status := 200
				s := &service{answer: func(*http.Request) (int, map[string]string) {
					return status, map[string]string{"Retry-After": "60"}
				}}
				r.Name, r.Window, r.Max = "peer", time.Hour, 200
				store := runtime.NewMemoryStore()
				open := func() *rateclient.Transport {
					return newTransport(t, s, store, rateclient.Peer{Pattern: "a.test/", Limits: []rateclient.PeerLimit{{Rule: r}}})
				}
				measured, other := open(), open()
				for range 40 {
					if _, err := get(t.Context(), measured, "http://a.test/"); err != nil {
						t.Fatal(err)
					}
				}
				sent := 0
				for range 300 {
					if _, err := get(t.Context(), other, "http://a.test/"); err == nil {
						sent++
					}
				}
				if sent > 160 {
					t.Errorf("%d requests of 200 after 40", sent)
				}
				time.Sleep(2 * time.Hour)
				status = 429
				_, _ = get(t.Context(), measured, "http://a.test/")
				before := s.seen()
				for range 20 {
					_, _ = get(t.Context(), other, "http://a.test/")
				}
				if n := s.seen() - before; n > 0 {
					t.Errorf("%d requests were sent while another replica's hold was in force", n)
				}
			})
		})
	}
}

// TestHoldIsGone has Redis forget a hold of a peer that goes on refusing: the next refusal is
// stored again.
func TestHoldIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(time.Minute) // which the peer goes on to name
		s := &service{answer: func(*http.Request) (int, map[string]string) {
			return 429, map[string]string{"Retry-After": fmt.Sprint(int(time.Until(end).Seconds()))}
		}}
		store, rule := runtime.NewMemoryStore(), runtime.Rule{Name: "peer", Window: time.Second, Max: 1000}
		transport := newTransport(t, s, store, rateclient.Peer{Pattern: "a.test/", Limits: []rateclient.PeerLimit{{Rule: rule}}})
		_, _ = get(t.Context(), transport, "http://a.test/")
		operator := runtime.New(store)
		defer operator.Close()
		rule.Hold, rule.Outgoing = true, true
		time.Sleep(time.Second)
		if err := operator.Release(t.Context(), rule.Limit(nil)); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			_, _ = get(t.Context(), transport, "http://a.test/")
		}
		if n := s.seen(); n != 2 {
			t.Errorf("%d requests were sent, want one and one after the release", n)
		}
	})
}

// TestPacingEnds has a quota of a day with few requests: while calls go on evenly after a hold,
// nobody is told to come back later than that lasts.
func TestPacingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 429
		s := &service{answer: func(*http.Request) (int, map[string]string) {
			return status, map[string]string{"Retry-After": "1"}
		}}
		transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: []rateclient.PeerLimit{{
			Rule: runtime.Rule{Name: "peer", Window: 24 * time.Hour, Max: 24}, Margin: -1}}})
		_, _ = get(t.Context(), transport, "http://a.test/")
		status = 200
		time.Sleep(2 * time.Second)
		began, refused := time.Now(), 0
		for range 3 {
			_, err := get(t.Context(), transport, "http://a.test/")
			limited := new(runtime.LimitedError)
			if !errors.As(err, &limited) {
				continue
			}
			refused++
			if limited.RetryAfter > time.Minute-time.Since(began) {
				t.Errorf("to come back after %v", limited.RetryAfter)
			}
			time.Sleep(limited.RetryAfter)
			if _, err := get(t.Context(), transport, "http://a.test/"); err != nil {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		if refused == 0 {
			t.Error("no call was refused")
		}
	})
}

// TestPacingByCost wants calls after a hold to go on by what they cost.
func TestPacingByCost(t *testing.T) {
	for _, cost := range []int64{1, 10, 100, 1_000} {
		synctest.Test(t, func(t *testing.T) {
			status := 429
			s := &service{answer: func(*http.Request) (int, map[string]string) {
				return status, map[string]string{"Retry-After": "60"}
			}}
			const most = 6_400
			transport := newTransport(t, s, runtime.NewMemoryStore(), rateclient.Peer{Pattern: "a.test/", Limits: []rateclient.PeerLimit{{
				Rule:   runtime.Rule{Name: "peer", Window: time.Minute, Max: most, Algorithm: runtime.SlidingCounter},
				Cost:   func(*http.Request) int64 { return cost },
				Margin: -1}}})
			_, _ = get(t.Context(), transport, "http://a.test/")
			status = 200
			time.Sleep(61 * time.Second)
			atOnce := 0
			for range 200 {
				if _, err := get(t.Context(), transport, "http://a.test/"); err == nil {
					atOnce++
				}
			}
			if want := max(1, most/64/int(cost)); atOnce != want {
				t.Errorf("at a cost of %d there go %d at once, want %d", cost, atOnce, want)
			}
		})
	}
}
