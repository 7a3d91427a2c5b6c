package callers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCalls counts few calls exactly and many nearly, and names the key that has most of them.
func TestCalls(t *testing.T) {
	t.Parallel()
	c, r := NewCalls(), rand.New(rand.NewPCG(1, 2))
	count := func(o Outcome, key string) {
		if n := c.Count(o, time.Duration(r.Int64())); n > 0 {
			c.Ask("r", []byte(key), n)
		}
	}
	const many = 240_000
	for i := range many {
		count(Admitted, fmt.Sprint("cold-", i))
		count(Admitted, "hot")
	}
	for range exact {
		count(Refused, "few")
	}
	decided, asked, most := c.Take(2)
	near := func(what string, n, want int64) {
		t.Helper()
		if n < want*9/10 || n > want*11/10 { // eight times the deviation
			t.Errorf("%s: %d in place of %d", what, n, want)
		}
	}
	near("admitted", decided[Admitted], 2*many)
	near("asked", int64(asked), 2*many+exact)
	if decided[Refused] != exact || decided[Shadow]+decided[Undecided] != 0 || len(most) != 2 || most[0].Key != "hot" || most[1].Key != "few" {
		t.Fatalf("decided %v, most %+v", decided, most)
	}
	near("hot", int64(most[0].Count-most[0].Over), many)
	if again, asked, most := c.Take(2); again != [Outcomes]int64{} || asked != 0 || len(most) > 0 {
		t.Fatalf("again %v, %d, %v", again, asked, most)
	}
}
