package operate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

func TestMain(m *testing.M) { limittest.Main(m) }

// newCore returns a core with two rules on a Redis of its own, in the namespace shop, that follows shop:limits,
// and what it has warned of.
func newCore(t *testing.T, client redis.UniversalClient) (c *Core, warned *[]string) {
	t.Helper()
	of := func(name string, parts ...string) Rule {
		return Rule{Rule: &runtime.Rule{Name: name, Window: time.Hour, Max: 4}, Reference: name, Parts: parts}
	}
	warned = new([]string)
	c = &Core{Client: client, Store: runtime.NewRedisStore(client, runtime.WithTimeout(20*time.Second), runtime.WithRefusalMemory(0)), Namespace: "shop", Hash: "shop:limits", Near: 0.8,
		Rules: []Rule{of("shop.Buy", "#id"), of("shop.Sell", "#id"), of("list")}, Warn: func(text string) { *warned = append(*warned, text) }}
	if err := c.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Limiter.Close(), c.Store.Close() })
	return c, warned
}

// buy makes calls of a caller.
func (c *Core) buy(t *testing.T, caller string, n int) {
	t.Helper()
	for range n {
		if _, err := c.Limiter.Take(t.Context(), c.Rules[0].Limit(runtime.NewKey().AddString(caller))); err != nil && !errors.Is(err, runtime.ErrLimited) {
			t.Fatal(err)
		}
	}
}

func toMax(of string, n int64) override.Edit {
	return override.Edit{Target: override.Target{Rule: of}, Set: rule.KeyOverride{Max: &n}}
}

// TestChanges makes changes, of one rule and of several, finds them in the history by who, when, of what, and
// takes them back.
func TestChanges(t *testing.T) {
	t.Parallel()
	c, warned := newCore(t, redistest.Start(t).Client(t))
	ctx := t.Context()
	editor, err := c.Editor()
	if err != nil {
		t.Fatal(err)
	}
	edit := func(e Edit, who, wantErr string) (ids []int64) {
		t.Helper()
		edits, several, err := c.Edits(ctx, e)
		if wantErr != "" {
			if _, is := errors.AsType[Failure](err); !is || !strings.Contains(err.Error(), wantErr) {
				t.Errorf("%v, want %q", err, wantErr)
			}
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		e.Who = who
		if several {
			_, id, err := editor.EditAll(ctx, e.Edit, edits)
			if err != nil {
				t.Fatal(err)
			}
			return []int64{id}
		}
		edits[0].Who = who
		done, err := editor.Edit(ctx, edits[0])
		if err != nil {
			t.Fatal(err)
		}
		return []int64{done.ID}
	}
	edit(Edit{Edit: toMax("shop.Buy", 10)}, "ada", "")
	edit(Edit{Edit: override.Edit{Target: override.Target{Rule: "shop.*"}, For: time.Hour}, Scale: 0.5}, "bob", "")
	edit(Edit{Edit: override.Edit{Target: override.Target{Rule: "shop.Buy", Pattern: "acme", Keys: true}, Block: true}}, "ada", "")
	edit(Edit{Edit: toMax("none*", 1)}, "", `no rule that starts with "none"`)
	edit(Edit{Edit: toMax("shop.By", 1)}, "", `did you mean "shop.Buy"`)
	edit(Edit{Edit: override.Edit{Target: override.Target{Rule: "shop.Buy", Pattern: "a:b", Keys: true}, Allow: true}}, "ada", "") // as a person says it
	list, err := c.Overrides(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var says []string
	for _, o := range list {
		says = append(says, fmt.Sprintf("%s: %d by %s in %d", TargetText(o.Target), deref(o.Max), o.Last.Who, o.Last.ID))
	}
	if want := []string{"rule shop.Buy: 5 by bob in 2", "a:b of rule shop.Buy: 0 by ada in 4", "acme of rule shop.Buy: 0 by ada in 3", "rule shop.Sell: 2 by bob in 2"}; !slices.Equal(says, want) {
		t.Errorf("%q, want %q", says, want)
	}
	if until := list[0].Until; time.Until(until) < 59*time.Minute {
		t.Errorf("it ends at %v", until)
	}
	for _, test := range []struct {
		Past
		want string
	}{
		{Past{Most: 10}, "4 3 2 1 of 4"}, {Past{Most: 1}, "4 of 4"}, {Past{Most: 10, Who: "ada"}, "4 3 1 of 3"}, {Past{Most: 10, Who: "b*"}, "2 of 1"},
		{Past{Most: 10, Rule: "shop.Sell"}, "2 of 1"}, {Past{Most: 10, Rule: "shop.*", Who: "ada"}, "4 3 1 of 3"}, {Past{Most: 10, Key: "acme"}, "3 of 1"},
		{Past{Most: 10, Rule: "shop.Sell", Key: "acme"}, "of 0"}, {Past{Most: 10, Since: time.Hour}, "4 3 2 1 of 4"}, {Past{Most: 10, Until: time.Hour}, "of 0"},
	} {
		found, all, err := c.History(ctx, test.Past)
		text := ""
		for _, r := range found {
			text += fmt.Sprint(r.ID, " ")
		}
		if text += fmt.Sprint("of ", all); err != nil || text != test.want {
			t.Errorf("%+v: %s, %v", test.Past, text, err)
		}
	}
	no := errors.New("no")
	if _, err := c.Undo(ctx, 2, override.Edit{Who: "ada"}, func(r override.Record) error { return no }); err != no {
		t.Errorf("an undo of somebody else's change is not asked about: %v", err)
	}
	if r, err := c.Undo(ctx, 2, override.Edit{Who: "bob"}, func(override.Record) error { return nil }); err != nil || r.Several != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if max := c.maxOf(t, "shop.Buy"); max != 10 {
		t.Errorf("after the undo the max is %d", max)
	}
	if _, err := c.Undo(ctx, 99, override.Edit{}, nil); !errors.Is(err, override.ErrNoRecord) {
		t.Error(err)
	}
	if len(*warned) > 0 {
		t.Errorf("%q", *warned)
	}
}

func deref(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func (c *Core) maxOf(t *testing.T, name string) int64 {
	says, err := c.OverridesNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return deref(says.Rules[name].Max)
}

// TestAffected asks what a change would do, judges keys, and finds a caller with what was decided for it.
func TestAffected(t *testing.T) {
	t.Parallel()
	c, _ := newCore(t, redistest.Start(t).Client(t))
	for i, caller := range []string{"ann", "bob", "cy", "dan", "eve"} {
		c.buy(t, caller, i+1)
	}
	for most, want := range map[int64]Affected{2: {5, 2, 4, nil}, 4: {5, 2, 2, nil}, 9: {5, 2, 0, nil}, 0: {5, 2, 5, []string{"those for whom nothing is counted are refused too"}}} {
		got, err := c.Affected(t.Context(), override.Target{Rule: "shop.Buy"}, override.Change{Values: override.Values{KeyOverride: rule.KeyOverride{Max: &most}}})
		if err != nil || fmt.Sprint(*got) != fmt.Sprint(want) {
			t.Errorf("max %d: %+v, %v, want %+v", most, got, err, want)
		}
	}
	editor, _ := c.Editor()
	e := toMax("shop.Buy", 5)
	e.Who, e.Why = "ada", "ticket 7"
	if _, err := editor.Edit(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	deciding, err := c.Deciding(t.Context())
	if err == nil {
		err = c.Renew(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WrongNamespace(t.Context(), c.Rules[1:]); err != nil {
		t.Errorf("rules without keys: %v", err)
	}
	if _, err := c.Limiter.Take(t.Context(), c.Rules[1].Limit(runtime.NewKey().AddString("dan"))); err != nil {
		t.Fatal(err)
	}
	found, err := c.Find(t.Context(), "dan", deciding, 10)
	if err != nil || len(found.Keys) != 2 || found.Keys[0].State.State != Near || found.Keys[0].Overrides[0].Last.Why != "ticket 7" {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestDoctorOfCore has a doctor say what is wrong, and what it does not know.
func TestDoctorOfCore(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	c, _ := newCore(t, client)
	c.buy(t, "ann", 1)
	state := func() string {
		checks, err := c.Doctor(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, f := range checks {
			if f.State != "ok" && f.Remedy == "" {
				t.Errorf("%+v: no remedy", f)
			}
			text += f.Check + " " + f.State + ", "
		}
		return text
	}
	if got := state(); !strings.Contains(got, "program unknown") || !strings.Contains(got, "processes unknown") || strings.Contains(got, "bad") {
		t.Error(got)
	}
	client.HSet(t.Context(), "shop:limits", "shop.Buy", `{"max":"x"}`)
	client.ConfigSet(t.Context(), "min-replicas-to-write", "1")
	if got := state(); !strings.HasPrefix(got, "writes bad, overrides bad") {
		t.Error(got)
	}
}

// TestExportAndImport moves counts and overrides to another Redis, and says what does not fit.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	from, left := newCore(t, redistest.Start(t).Client(t))
	to, warned := newCore(t, redistest.Start(t).Client(t))
	from.buy(t, "ann", 3)
	// Of another program, and not to be exported in part: only the first member is text.
	from.Client.ZAdd(t.Context(), "shop:rate_limit:shop.Buy:eve", redis.Z{Score: 2, Member: "a"}, redis.Z{Score: 1, Member: "\xff"})
	editor, _ := from.Editor()
	if _, err := editor.Edit(t.Context(), toMax("shop.Sell", 7)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := from.Export(t.Context(), &out, nil); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(*left, "\n"); !strings.Contains(text, "1 keys are left out") {
		t.Error(text)
	}
	m, err := to.Import(bytes.NewReader(out.Bytes()), ImportOptions{Who: "ada"})
	if err != nil || m.Keys != 1 {
		t.Fatal(m, err)
	}
	lines, err := m.Run(t.Context())
	if got := fmt.Sprint(lines); err != nil || got != "[{(overrides) 1 0 0 0 false} {(history) 1 0 0 0 false} {shop.Buy 1 0 0 0 false}]" {
		t.Error(got, err)
	}
	if k, err := to.State(t.Context(), to.Rules[0], runtime.NewKey().AddString("ann")); err != nil || k.Used != 3 || to.maxOf(t, "shop.Sell") != 7 {
		t.Errorf("%+v, %v", k, err)
	}
	bad := strings.Replace(out.String(), `"rule":"shop.Buy"`, `"rule":"shop.By"`, 1)
	if _, err := to.Import(strings.NewReader(bad), ImportOptions{}); err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Error(err)
	}
	if m, err = to.Import(strings.NewReader(bad), ImportOptions{Skip: true}); err != nil || m.Keys != 0 || len(*warned) != 1 {
		t.Error(m, err, *warned)
	}
}

// TestClear wants that what cannot be noted is not done, and that what frees memory in a full Redis is.
func TestClear(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	c, warned := newCore(t, client)
	ann := runtime.NewKey().AddString("ann")
	used := func() int64 {
		k, err := c.State(t.Context(), c.Rules[0], ann)
		if err != nil {
			t.Fatal(err)
		}
		return k.Used
	}
	reset := func() error {
		before, err := c.State(t.Context(), c.Rules[0], ann)
		if err != nil {
			t.Fatal(err)
		}
		return c.Clear(t.Context(), Reset, c.Rules[0], ann, before, override.Record{Who: "ada"})
	}
	c.buy(t, "ann", 5)
	if err := reset(); err != nil || used() != 0 {
		t.Errorf("%d used, %v", used(), err)
	}
	if found, _, err := c.History(t.Context(), Past{Most: 9, Key: "ann"}); err != nil || len(found) != 1 || found[0].Did != Reset || found[0].Before != "refused, 4 used" {
		t.Errorf("%+v, %v", found, err)
	}
	c.buy(t, "ann", 3)
	client.ConfigSet(t.Context(), "min-replicas-to-write", "1")
	if err := reset(); err == nil || used() != 3 || RefusesWrites(InFull(err)) == "" {
		t.Errorf("%d used, %v", used(), err)
	}
	client.ConfigSet(t.Context(), "min-replicas-to-write", "0")
	client.ConfigSet(t.Context(), "maxmemory", "1mb")
	if err := reset(); err != nil || used() != 0 || len(*warned) != 1 {
		t.Errorf("%d used, %v, %q", used(), err, *warned)
	}
}
