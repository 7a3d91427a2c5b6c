package main

import (
	"bytes"
	"testing"
	"time"
)

// Each walk counts its own scans, once, however many there were before.
func testScansOfWalk(t *testing.T, b *bench) {
	t.Helper()
	b.take(t, 1, "login", 0, "user-1")
	o := &operator{program: &program{err: new(bytes.Buffer), shows: true}, options: &options{redis: b.env["RATECTL_REDIS"], timeout: time.Minute, rules: b.env["RATECTL_RULES"]}}
	o.getenv = func(name string) string { return b.env[name] }
	var err error
	if o.known, err = o.readListing(o.rules); err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if err := o.open(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var first int64
	for i := range 4 {
		if _, err := o.callers(t.Context()); err != nil {
			t.Fatal(err)
		}
		switch n := o.scans.n.Load(); {
		case i == 0 && n == 0:
			t.Fatal("no scan is counted")
		case i == 0:
			first = n
		case n != first:
			t.Errorf("walk %d: %d scans, the first had %d", i, n, first)
		}
	}
}
