package keytext

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// How long a key takes to be looked up. The callers are 1,000 that are drawn at
// random, or every caller: then memory that the processor has to wait for is the
// most of it.
func BenchmarkTable(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		for _, kind := range []struct{ name, pattern string }{
			{"key", "tenant-#"},
			{"prefix", "tenant-#:*"},
			{"five-prefixes", "tenant-?:*"}, // of as many lengths
			{"long-prefix", strings.Repeat("organisation-", 6) + "#:*"},
			{"60-lengths", "tenant-#_:*"},
		} {
			patterns := make([]string, n)
			for i := range patterns {
				patterns[i] = strings.NewReplacer("#", fmt.Sprintf("%08d", i), "?", fmt.Sprint(i), "_", strings.Repeat("x", i%60)).Replace(kind.pattern)
			}
			slices.Sort(patterns)
			table := newTable(patterns)
			callers := func(of int, miss bool) (all [][]byte) {
				which := rand.Perm(n)[:min(n, of)]
				var text []byte
				for range 1 << 14 {
					at := len(text)
					p, prefix := strings.CutSuffix(patterns[which[rand.IntN(len(which))]], "*")
					if miss {
						p = strings.Replace(p, "-", "+", -1)
					}
					text = append(text, p...)
					if prefix {
						text = append(text, "user-12"...)
					}
					all = append(all, text[at:len(text):len(text)])
				}
				return all
			}
			for _, of := range []struct {
				name string
				all  [][]byte
				want bool
			}{{"hit-of-1000", callers(1000, false), true}, {"hit-of-all", callers(n, false), true}, {"miss", callers(1000, true), false}} {
				b.Run(fmt.Sprintf("%s/%d/%s", kind.name, n, of.name), func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						if _, found := table.Find(of.all[i&(1<<14-1)]); found != of.want {
							b.Fatal("found what it is not to find, or the reverse")
						}
					}
				})
			}
		}
	}
}
