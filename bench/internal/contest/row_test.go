package contest

import (
	"testing"
	"time"

	"github.com/rategen/rategen/bench/internal/load"
)

func sampleOf(admitted, denied, recalled, failed int64) *load.Sample {
	s := &load.Sample{Elapsed: 2 * time.Second, CPU: time.Second, Allocs: 400}
	s.Answers[load.Admitted], s.Answers[load.Denied] = admitted, denied
	s.Answers[load.Recalled], s.Answers[load.Failed] = recalled, failed
	return s
}

func TestRow(t *testing.T) {
	c := Case{1, 10, Full}
	var row Row
	for _, recalled := range []int64{180, 80, 380} {
		sample := sampleOf(0, 20, recalled, 0)
		row.add(c, sample)
		row.addServer(sample, usage{cpu: time.Second, scripts: 20, commands: 40})
		row.judge(c, sample)
	}
	for _, test := range []struct {
		m    Metric
		want float64
	}{
		{Rate, 100}, {PerOp, 0.01}, {Allocs, 2}, {ClientCPU, 0.005}, {Asked, 1},
		{ServerCPU, 0.005}, {Scripts, 0.1}, {Commands, 0.2},
	} {
		if got := row.Value(test.m); got != test.want {
			t.Errorf("metric %d: got %v, want %v", test.m, got, test.want)
		}
	}
}

// TestJudge wants numbers not to count if a limiter did something else.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name                               string
		kind                               Kind
		admitted, denied, recalled, failed int64
		fault                              string
	}{
		{"admitted", Distinct, 100, 0, 0, 0, ""},
		{"denied one", Hot, 99, 1, 0, 0, "denied 1 of 100"},
		{"recalled one", Hot, 99, 0, 1, 0, "denied 1 of 100"},
		{"denied", Full, 0, 10, 90, 0, ""},
		{"admitted one", Full, 1, 99, 0, 0, "admitted 1 of 100"},
		{"gave up", Hot, 75, 0, 0, 25, ""},
		{"gave up always", Hot, 0, 0, 0, 25, "decided nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Case{1, 1, test.kind}
			var row Row
			sample := sampleOf(test.admitted, test.denied, test.recalled, test.failed)
			row.add(c, sample)
			row.judge(c, sample)
			if row.Fault != test.fault {
				t.Errorf("fault %q, want %q", row.Fault, test.fault)
			}
			if counts := row.Value(Rate) > 0; counts != (test.fault == "") {
				t.Errorf("rate %v", row.Value(Rate))
			}
			if want := float64(test.failed) / float64(sample.Calls()); row.GaveUp != want {
				t.Errorf("gave up %v, want %v", row.GaveUp, want)
			}
		})
	}
}
