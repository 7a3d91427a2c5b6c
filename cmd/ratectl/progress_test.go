package main

import (
	"bytes"
	"testing"
)

// Each walk counts its own scans, once, however many there were before.
func testScansOfWalk(t *testing.T, b *bench) {
	t.Helper()
	b.take(t, 1, "login.user", 0, "user-1")
	o := b.top(t, &program{err: new(bytes.Buffer), shows: true})
	var first int64
	for i := range 4 {
		if _, err := o.callers(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := o.scans.n.Load()
		if i == 0 && n == 0 {
			t.Fatal("no scan is counted")
		} else if i == 0 {
			first = n
		} else if n != first {
			t.Errorf("walk %d: %d scans, the first had %d", i, n, first)
		}
	}
}
