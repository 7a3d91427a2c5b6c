package main

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
)

func TestMain(m *testing.M) {
	if runJob() {
		return
	}
	os.Exit(m.Run())
}

// TestParts wants parts to be as they should be, in short windows. A busy machine delays
// requests for longer than a 64th of these, so the margin is long, and how
// much of the limit is used is for the command to say. What else hangs on the machine is
// left to full runs.
func TestParts(t *testing.T) {
	wanted := regexp.MustCompile(effort.Choose("^fixed window$|closed", ""))
	c := config{replicas: 8, callers: 3, most: 48, window: 4 * time.Second, margin: time.Second,
		lasts: effort.Choose(10*time.Second, time.Minute)}
	steady, ok := ask(c, steadies, wanted, len(steadies))
	happened, ok2 := ask(c, incidents, wanted, len(incidents))
	write(t.Output(), c, steady)
	writeIncidents(t.Output(), c, happened)
	if !ok || !ok2 {
		t.Error("see what is said above")
	}
}
