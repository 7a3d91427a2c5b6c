package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

const ms = time.Millisecond

// calls returns n calls by source, one after the other from begin on, each a
// millisecond long.
func calls(n int, begin time.Duration, source rule.Source, fate fate) []record {
	var all []record
	for i := range n {
		at := begin + time.Duration(i)*ms
		all = append(all, record{begin: at, end: at + ms, source: source, fate: fate})
	}
	return all
}

// TestComplaint wants a complaint of everything that must not be.
func TestComplaint(t *testing.T) {
	const store, local, failure = rule.SourceStore, rule.SourceLocal, rule.SourceFailure
	fault := func(failovers int64) Fault { return Fault{Failovers: failovers} }
	t1 := times{begin: 1000 * ms, end: 1100 * ms, over: 1100 * ms, stop: 4000 * ms}
	good := slices.Concat(calls(20, 1000*ms, store, admitted), calls(1, 3500*ms, store, refused))
	for _, test := range []struct {
		name   string
		policy runtime.FailurePolicy
		fault  Fault
		more   []record
		want   string // "": no complaint
	}{
		{"all well", runtime.FailOpen, fault(0), nil, ""},
		{"the store admits one too many", runtime.FailOpen, fault(0), calls(1, 1050*ms, store, admitted), "the store admitted 21"},
		{"after a failover it may", runtime.FailClosed, fault(1), calls(20, 1050*ms, store, admitted), ""},
		{"but not more than again", runtime.FailClosed, fault(1), calls(21, 1050*ms, store, admitted), "the store admitted 41"},
		{"an open policy admits all", runtime.FailOpen, fault(0), calls(50, 1020*ms, failure, admitted), ""},
		{"a closed one none", runtime.FailClosed, fault(0), calls(1, 1050*ms, failure, admitted), "without the store 1 were admitted"},
		{"a local one as many again", runtime.FailLocal, fault(0), calls(20, 1050*ms, local, admitted), ""},
		{"and no more", runtime.FailLocal, fault(0), calls(21, 1050*ms, local, admitted), "without the store 21 were admitted"},
		{"another error", runtime.FailClosed, fault(0), calls(1, 1050*ms, failure, strange), "1 calls saw"},
		{"the store stays away", runtime.FailClosed, fault(0), calls(2800, 1100*ms, failure, undecided), "does not decide again"},
	} {
		v := view{policy: test.policy, limits: make([]runtime.Limit, 1)}
		v.records = slices.Concat(good, test.more)
		s := v.seen(test.fault, t1)
		if got := s.Complaint(); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: complaint %q, want %q", test.name, got, test.want)
		}
	}
	v := view{policy: runtime.FailOpen, limits: make([]runtime.Limit, 2), records: good}
	s := v.seen(fault(0), t1)
	if got := s.Complaint(); !strings.Contains(got, "not enforced again") {
		t.Errorf("a key on which nobody is refused: complaint %q", got)
	}
}

// TestMoments wants the times until the store decides and refuses again.
func TestMoments(t *testing.T) {
	v := view{policy: runtime.FailClosed, limits: make([]runtime.Limit, 1)}
	v.records = append(v.records, calls(10, 1000*ms, rule.SourceFailure, undecided)...)
	v.records = append(v.records, calls(1, 1300*ms, rule.SourceStore, refused)...)
	v.records = append(v.records, calls(1, 1499*ms, rule.SourceFailure, undecided)...)
	v.records = append(v.records, calls(1, 1699*ms, rule.SourceStore, refused)...)
	v.records = append(v.records, calls(1, 3000*ms, rule.SourceFailure, undecided)...) // another story
	s := v.seen(Fault{}, times{begin: 900 * ms, end: 1005 * ms, over: 1010 * ms, stop: 4000 * ms})
	if s.Back != 490*ms || s.Enforced != 690*ms {
		t.Errorf("back after %v, enforced after %v, want 490ms and 690ms", s.Back, s.Enforced)
	}
	if s.Calls != 6 || s.Undecided != 6 || s.Store != 0 || s.Max != ms {
		t.Errorf("of the calls during the fault: %+v", s)
	}
}
