package ratefield

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
	members := []Member{
		{Name: "burst", Quota: 100, Window: 60, Known: true, Left: 50, Effective: 30},
		{Name: "daily", Quota: 1000, Window: 86400, Known: true, Left: 0, Effective: 1},
		{Name: `a "b" \c`, Unit: "content-bytes", Quota: 65535, Known: true, Left: 9, Partition: "partitionkey"},
		{Name: "Büro", Quota: 0, Window: 1},
	}
	got := []string{string(AppendPolicies(nil, members)), string(AppendLimits(nil, members, Draft11)), string(AppendLimits(nil, members, DraftProposed))}
	want := []string{
		`"burst";q=100;w=60, "daily";q=1000;w=86400, "a \"b\" \\c";q=65535;qu="content-bytes";pk=:cGFydGl0aW9ua2V5:, "B%C3%BCro";q=0;w=1`,
		`"burst";r=50;t=30, "daily";r=0;t=1, "a \"b\" \\c";r=9;pk=:cGFydGl0aW9ua2V5:`,
		`"burst";a=50;w=30, "daily";a=0;w=1, "a \"b\" \\c";a=9;pk=:cGFydGl0aW9ua2V5:`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFieldsAllocateNothing(t *testing.T) {
	members := []Member{
		{Name: "EmployeeService.GetByID", Quota: 100, Window: 60, Known: true, Left: 50, Effective: 30, Partition: "partitionkey"},
		{Name: "EmployeeService", Unit: "content-bytes", Quota: 1000, Known: true, Left: 1, Effective: 1},
	}
	buffer := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() { buffer = AppendLimits(AppendPolicies(buffer[:0], members), members, Draft11) }); n != 0 {
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
		members := []Member{
			{Name: name, Unit: unit, Quota: quota, Window: window, Known: true, Left: left, Effective: effective, Partition: partition},
			{Name: "other", Quota: 1},
		}
		policies := parseList(t, string(AppendPolicies(nil, members)))
		limits := parseList(t, string(AppendLimits(nil, members, Draft11)))
		if len(policies) != 2 || len(limits) != 1 {
			t.Fatalf("%d policies and %d limits", len(policies), len(limits))
		}
		for _, it := range []httpsfv.Item{policies[0], limits[0]} {
			if got, _ := it.Value.(string); got != Printable(name) {
				t.Errorf("the name is %q, not %q", got, Printable(name))
			}
			pk, _ := it.Params.Get("pk")
			if want := partition[:min(len(partition), maxPartition)]; want == "" && pk != nil || want != "" && string(pk.([]byte)) != want {
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
		if got, ok := policies[0].Params.Get("qu"); ok != (unit != "") || ok && got != Printable(unit) {
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
