package ratehttp

import (
	"math"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/google/go-cmp/cmp"
)

// What the writer writes is version 11 of the draft, to the byte.
func TestFieldsOfDraft11(t *testing.T) {
	if DraftVersion != 11 {
		t.Fatal("the golden values are those of another version")
	}
	members := []member{
		{name: "burst", quota: 100, window: 60, known: true, left: 50, effective: 30},
		{name: "daily", quota: 1000, window: 86400, known: true, left: 0, effective: 1},
		{name: `a "b" \c`, unit: "content-bytes", quota: 65535, known: true, left: 9, partition: "partitionkey"},
		{name: "Büro", quota: 0, window: 1},
	}
	got := []string{string(appendPolicies(nil, members)), string(appendLimits(nil, members))}
	want := []string{
		`"burst";q=100;w=60, "daily";q=1000;w=86400, "a \"b\" \\c";q=65535;qu="content-bytes";pk=:cGFydGl0aW9ua2V5:, "B%C3%BCro";q=0;w=1`,
		`"burst";r=50;t=30, "daily";r=0;t=1, "a \"b\" \\c";r=9;pk=:cGFydGl0aW9ua2V5:`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFieldsAllocateNothing(t *testing.T) {
	members := []member{
		{name: "EmployeeService.GetByID", quota: 100, window: 60, known: true, left: 50, effective: 30, partition: "partitionkey"},
		{name: "EmployeeService", unit: "content-bytes", quota: 1000, known: true, left: 1, effective: 1},
	}
	buffer := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() { buffer = appendLimits(appendPolicies(buffer[:0], members), members) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever a policy is called and whatever its numbers are, an independent parser
// reads back what was written.
func FuzzFields(f *testing.F) {
	f.Add("burst", "", int64(100), int64(60), int64(50), int64(30), "")
	f.Add(`"\`, "content-bytes", int64(math.MaxInt64), int64(math.MinInt64), int64(-1), int64(math.MaxInt64), "\x00\xff")
	f.Add("查询\x00\x7f\n", "\r\n", int64(0), int64(0), int64(0), int64(0), strings.Repeat("k", 40))
	f.Fuzz(func(t *testing.T, name, unit string, quota, window, left, effective int64, partition string) {
		members := []member{
			{name: name, unit: unit, quota: quota, window: window, known: true, left: left, effective: effective, partition: partition},
			{name: "other", quota: 1},
		}
		policies := parseList(t, string(appendPolicies(nil, members)))
		limits := parseList(t, string(appendLimits(nil, members)))
		if len(policies) != 2 || len(limits) != 1 {
			t.Fatalf("%d policies and %d limits", len(policies), len(limits))
		}
		for _, it := range []httpsfv.Item{policies[0], limits[0]} {
			if got, _ := it.Value.(string); got != printable(name) {
				t.Errorf("the name is %q, not %q", got, printable(name))
			}
			pk, _ := it.Params.Get("pk")
			if want := partition[:min(len(partition), partitionBytes)]; want == "" && pk != nil || want != "" && string(pk.([]byte)) != want {
				t.Errorf("pk is %v, not %q", pk, want)
			}
		}
		check := func(it httpsfv.Item, key string, want int64, always bool) {
			got, ok := it.Params.Get(key)
			want = min(max(want, 0), maxInteger)
			if ok != (always || want > 0) || ok && got != want {
				t.Errorf("%s is %v, not %d", key, got, want)
			}
		}
		check(policies[0], "q", quota, true)
		check(policies[0], "w", window, false)
		check(limits[0], "r", left, true)
		check(limits[0], "t", effective, false)
		if got, ok := policies[0].Params.Get("qu"); ok != (unit != "") || ok && got != printable(unit) {
			t.Errorf("qu is %v, not %q", got, unit)
		}
	})
}

func parseList(t *testing.T, field string) (items []httpsfv.Item) {
	t.Helper()
	list, err := httpsfv.UnmarshalList([]string{field})
	if err != nil {
		t.Fatalf("%q: %v", field, err)
	}
	for _, m := range list {
		it, ok := m.(httpsfv.Item)
		if !ok {
			t.Fatalf("%q has a member that is no Item", field)
		}
		items = append(items, it)
	}
	return items
}
