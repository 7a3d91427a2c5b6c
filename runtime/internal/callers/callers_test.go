package callers

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSketch counts keys of which some are frequent among a great many that are
// not, and compares with exact counts.
func TestSketch(t *testing.T) {
	t.Parallel()
	s, exact := NewSketch(), make(map[string]uint64)
	r := rand.New(rand.NewPCG(1, 2))
	total := uint64(0)
	for i := range 200_000 {
		key := fmt.Sprint("rare-", i)
		if hot := r.IntN(40); hot < 10 {
			key = fmt.Sprint("hot-", min(hot, r.IntN(10)))
		}
		exact[key]++
		s.Add("rule", []byte(key), -1, 1)
	}
	all := s.All()
	for _, k := range all {
		total += k.Count
		if is := exact[k.Key]; k.Rule != "rule" || k.Count < is || k.Count-k.Margin > is {
			t.Errorf("%+v, in truth %d", k, is)
		}
	}
	if len(all) > MaxKeys || total != 200_000 {
		t.Errorf("%d keys, %d refusals", len(all), total)
	}
	most, others := Most(all, 8)
	for _, k := range most {
		others += k.Count
		if exact[k.Key] < 1000 {
			t.Errorf("%+v, in truth %d", k, exact[k.Key])
		}
	}
	if len(most) != 8 || others != total {
		t.Errorf("%d keys, %d refusals", len(most), others)
	}
}

// TestMost wants that a rule which refuses many hides no caller of another.
func TestMost(t *testing.T) {
	t.Parallel()
	all := []Caller{{"a", "1", 7, 90, 0}, {"a", "2", -1, 80, 0}, {"a", "3", -1, 70, 5}, {"b", "4", -1, 2, 0}, {"c", "5", -1, 6, 6}}
	most, others := Most(all, 4)
	want := []Caller{{"a", "1", 7, 90, 0}, {"b", "4", -1, 2, 0}, {"a", "2", -1, 80, 0}}
	if diff := cmp.Diff(append(want, Caller{"a", "3", -1, 65, 0})[:len(most)], most); diff != "" || len(most) < 3 {
		t.Error(diff)
	}
	for _, r := range most {
		others += r.Count
	}
	if others != 248 {
		t.Errorf("%d in all", others)
	}
}

// TestCounter counts few refusals of many keys exactly, many of one nearly, and returns what could not
// be told.
func TestCounter(t *testing.T) {
	t.Parallel()
	c := NewCounter()
	const many, callers = 200_000, 8
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range many / callers {
				c.Add("r", []byte("hot"), -1)
			}
		})
	}
	all.Wait()
	for i := range 100 {
		for range i {
			c.Add("r", fmt.Append(nil, "cold-", i), -1)
		}
	}
	taken := c.Take()
	if again := c.Take(); len(again) > 0 {
		t.Errorf("again %v", again)
	}
	c.Return(taken)
	counts := map[string]uint64{}
	for _, r := range c.Take() {
		counts[r.Key] = r.Count
	}
	if n := float64(counts["hot"]); n < 0.9*many || n > 1.1*many { // eight times the deviation
		t.Errorf("%v of %v", n, many)
	}
	wrong := 0
	for i := 1; i < 100; i++ {
		if counts[fmt.Sprint("cold-", i)] != uint64(i) {
			wrong++ // it shares a slot with another key
		}
	}
	if wrong > 20 {
		t.Errorf("%d of 99 counts are wrong", wrong)
	}
}
