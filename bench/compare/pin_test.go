package main

import (
	"slices"
	"testing"
)

func TestAllowed(t *testing.T) {
	for _, test := range []struct {
		status string
		want   []string
	}{
		{"Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems:\t0\n", []string{"0", "1", "2", "3"}},
		{"Cpus_allowed_list:\t2,5-6,9\n", []string{"2", "5", "6", "9"}},
	} {
		got, err := allowed(test.status)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%q: got %v, %v, want %v", test.status, got, err, test.want)
		}
	}
	for _, bad := range []string{"", "Cpus_allowed_list:\tall\n"} {
		if _, err := allowed(bad); err == nil {
			t.Errorf("%q is taken for a list", bad)
		}
	}
}
