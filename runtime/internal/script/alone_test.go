package script_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/goredis"
	"github.com/rategen/rategen/runtime/internal/script"
	"github.com/rategen/rategen/runtime/internal/terms"
)

// TestAlone has the script of one call and the script of a batch decide the same calls, of
// every algorithm, with and without a block and in shadow mode, by right and by wrong clocks.
// They read other layouts of arguments, and answer the same.
func TestAlone(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for a := range algorithm.Algorithms {
		for name, change := range map[string]func(*terms.Terms){
			"plain": func(*terms.Terms) {}, "shadow": func(t *terms.Terms) { t.Shadow = true },
			"block": func(t *terms.Terms) { t.Block = time.Minute.Microseconds() },
			"keep": func(t *terms.Terms) {
				if t.Period != nil {
					t.Keep = 3
				}
			},
			"keep and block": func(t *terms.Terms) {
				t.Block = time.Minute.Microseconds()
				if t.Period != nil {
					t.Keep = 3
				}
			},
		} {
			for _, check := range []bool{false, true} {
				for _, off := range []time.Duration{0, -400 * 24 * time.Hour} {
					kind := callsOf(a, 1, 1)[0].Charges[0].Terms
					change(&kind)
					if a >= algorithm.Permits && kind.Block > 0 {
						continue // which no such rule has
					}
					kind.Max = 5
					if a.Is(algorithm.Drains) {
						kind.Param = 5
					}
					who := fmt.Sprintf("%d %s %v %v", a, name, check, off)
					for i, cost := range []int64{2, 3, 1, 4} {
						alone, batch := chargesOf(kind, cost, who, "alone"), chargesOf(kind, cost, who, "one", "other")
						first := decided(t, client, alone, check, off)
						second := decided(t, client, batch, check, off)
						if (first == nil) != (second == nil) || first != nil && fmt.Sprintf("%T", first) != fmt.Sprintf("%T", second) {
							t.Fatalf("%s, call %d: alone %v, in a batch %v", who, i, first, second)
						}
						if wants := kind.Period != nil && off != 0; (first != nil) != wants {
							t.Fatalf("%s, call %d: %v", who, i, first)
						}
						for _, other := range batch {
							x, y := alone[0].Charges[0].Result, other.Charges[0].Result
							apart := max((x.RetryAfter - y.RetryAfter).Abs(), (x.ResetAfter - y.ResetAfter).Abs(), (x.Delay - y.Delay).Abs())
							if x.Allowed != y.Allowed || x.Remaining != y.Remaining || x.Blocked != y.Blocked || apart > 10*time.Second {
								t.Errorf("%s, call %d: alone %+v, in a batch %+v", who, i, x, y)
							}
						}
					}
				}
			}
		}
	}
}

// chargesOf returns a call of a cost to each of some keys.
func chargesOf(kind terms.Terms, cost int64, who string, keys ...string) (calls []terms.Call) {
	for _, key := range keys {
		calls = append(calls, terms.Call{Charges: []terms.Charge{{Terms: kind, Cost: cost, Key: fmt.Append(nil, who, key)}}})
	}
	return calls
}

// decided takes calls by one script, and returns its error.
func decided(t *testing.T, client *redis.Client, calls []terms.Call, check bool, off time.Duration) error {
	var library script.Library
	times := make([]int64, len(calls))
	for i := range times {
		times[i] = 1
	}
	e := new(script.Execution)
	e.Fill(script.Take, calls, times, make([]script.Outcome, len(calls)), time.Now().Add(off).UnixMicro())
	e.WithText, e.Check = true, check
	library.Send(t.Context(), goredis.New(client), []*script.Execution{e})
	for i := range calls {
		if e.Err == nil && calls[i].Err != nil {
			t.Fatal(calls[i].Err)
		}
	}
	return e.Err
}
