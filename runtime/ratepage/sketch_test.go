package ratepage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSketch counts keys of which some are frequent among a great many that are
// not, and compares with exact counts.
func TestSketch(t *testing.T) {
	t.Parallel()
	s := newSketch()
	exact := make(map[string]uint64)
	now := time.Unix(1_000_000_200, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200_000 {
		key := fmt.Sprint("rare-", i)
		if hot := r.IntN(40); hot < 10 {
			key = fmt.Sprint("hot-", min(hot, r.IntN(10)))
		}
		exact[key]++
		s.add("rule", []byte(key), now)
	}
	top := s.top(8, now)
	for _, k := range top {
		if is := exact[k.key]; k.rule != "rule" || k.count < is || k.count-k.over > is || is < 1000 {
			t.Errorf("%+v, in truth %d", k, is)
		}
	}
	if len(top) != 8 {
		t.Errorf("%d keys", len(top))
	}
	for i := range s.shards {
		if n := len(s.shards[i].current.counters); n > shardKeys || n != len(s.shards[i].current.byName) {
			t.Errorf("shard %d has %d counters", i, n)
		}
	}
}

// TestSketchForgets wants denials to be forgotten after one to two spans, and the
// keys of rules to be told apart.
func TestSketchForgets(t *testing.T) {
	t.Parallel()
	s := newSketch()
	now := time.Unix(0, 100*int64(sketchSpan))
	top := func() (all []string) {
		for _, k := range s.top(10, now) {
			all = append(all, fmt.Sprint(k.rule, " ", k.key, " ", k.count))
		}
		return all
	}
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, top()); diff != "" {
			t.Error(diff)
		}
	}
	s.add("a", []byte("x"), now)
	s.add("a", []byte("x"), now)
	s.add("b", []byte("x"), now)
	check("a x 2", "b x 1")
	now = now.Add(sketchSpan)
	s.add("b", []byte("x"), now)
	s.add("b", []byte("x"), now)
	check("b x 3", "a x 2")
	now = now.Add(sketchSpan)
	check("b x 2")
	now = now.Add(sketchSpan)
	check()
	s.add("b", []byte("y"), now)
	now = now.Add(10 * sketchSpan)
	check()
}

func TestMaskKey(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"": "", "ann": "•••", "anna": "•••", "annabel": "a•••l", "acme:robot:7": "•••:r•••t:•••",
		"203.0.113.7": "2•••7", "a%3Aabc": "•••", "日本語日本": "日•••本", "::": "::", "%sha256-00aa": "•••",
	} {
		if got := maskKey(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}
