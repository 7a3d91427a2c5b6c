package main

import (
	"strings"
	"testing"
	"time"
)

// TestGrowth wants memory that grows in the last third to be noticed, and
// memory that goes up and down not.
func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		heap  func(round int) int64
		grows bool
	}{
		"flat":            {func(int) int64 { return 20e6 }, false},
		"up and down":     {func(i int) int64 { return 20e6 + int64(i%2)*10e6 }, false},
		"grows at first":  {func(i int) int64 { return 20e6 + int64(min(i, 10))*5e6 }, false},
		"grows":           {func(i int) int64 { return 20e6 + int64(i)*1e6 }, true},
		"grows late":      {func(i int) int64 { return 20e6 + int64(max(0, i-19))*5e6 }, true},
		"grows by little": {func(i int) int64 { return 4e6 + int64(i)*1e4 }, false},
		"a leak":          {func(i int) int64 { return 4e6 + int64(i)*2e4 }, true},
	} {
		table := &table{config: config{round: time.Second}}
		for i := range 30 {
			table.add(row{verdict: verdict{Calls: 2, Exact: 1, Bounds: 1}, report: report{Heap: c.heap(i)}, happened: "-"})
		}
		var out strings.Builder
		if err := table.write(&out); (err != nil) != c.grows {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
	short := &table{config: config{round: time.Second}}
	short.add(row{verdict: verdict{Calls: 2, Exact: 1, Bounds: 1, Over: 1, notes: []string{"too many"}}, happened: "-"})
	var out strings.Builder
	if err := short.write(&out); err == nil || !strings.Contains(err.Error(), "too many") || !strings.Contains(out.String(), "too short") {
		t.Errorf("%v\n%s", err, out.String())
	}
	silent := &table{config: config{round: time.Second}}
	silent.add(row{happened: "-"})
	if err := silent.write(&out); err == nil || !strings.Contains(err.Error(), "proves nothing") {
		t.Error(err)
	}
}
