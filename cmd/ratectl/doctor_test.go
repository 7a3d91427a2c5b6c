package main

import (
	"strings"
	"testing"
)

// A cluster is examined node by node, and a replica is none that can be used.
func testDoctorOfCluster(t *testing.T, b *bench) {
	a := b.run("doctor")
	if n := strings.Count(a.out, "\nversion "); a.code != 0 || n < 3 {
		t.Errorf("exit code %d, %d servers, %s\n%s", a.code, n, a.err, a.out)
	}
}
