package override

import (
	stdcmp "cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

func ofRule(name string) Target          { return Target{Rule: name} }
func ofKeys(name, pattern string) Target { return Target{Rule: name, Pattern: pattern, Keys: true} }

func ofShares(name, pattern string) Target {
	return Target{Rule: name, Pattern: pattern, Shares: true}
}

func toMax(n int64) Edit { return Edit{Set: rule.KeyOverride{Max: &n}} }

// Changes are merged into what stands in the hash, wherever that is, and leave
// the rest as it was written.
func TestEditor(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	r := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
	b := &runtime.Rule{Name: "b", Window: time.Minute, Max: 5, Algorithm: runtime.TokenBucket, Headroom: 2}
	soon := time.Now().Add(time.Hour).Truncate(time.Second)
	timed := func(e Edit) Edit { e.Until = soon; return e }
	endless := func(e Edit) Edit { e.Endless = true; return e }
	shadow := Edit{Set: rule.KeyOverride{Mode: new(runtime.ModeShadow)}}
	weigh := Edit{Set: rule.KeyOverride{Weight: new(int64(4))}}
	block, allow := Edit{Block: true}, Edit{Allow: true}
	without := func(names ...string) *Edit { return &Edit{Clear: names} }
	until := `,"until":"` + soon.UTC().Format(time.RFC3339) + `"}`
	past := `, "until": "2020-01-01T00:00:00Z"}`
	type hash map[string]string
	for name, test := range map[string]struct {
		before hash
		target Target
		change *Edit // nil: remove
		after  hash
		err    string // a part of it
	}{
		"a rule":               {nil, ofRule("r"), new(toMax(7)), hash{"r": `{"max":7}`}, ""},
		"a mode beside a max":  {hash{"r": `{"max": 7}`}, ofRule("r"), &shadow, hash{"r": `{"max":7,"mode":"shadow"}`}, ""},
		"a max in place":       {hash{"r": `{"max": 7}`}, ofRule("r"), new(toMax(8)), hash{"r": `{"max":8}`}, ""},
		"another spelling":     {hash{`["r"]`: `{"max": 7}`}, ofRule("r"), new(toMax(8)), hash{`["r"]`: `{"max":8}`}, ""},
		"a key":                {nil, ofKeys("r", "a<*"), new(toMax(7)), hash{`["r","a<*"]`: `{"max":7}`}, ""},
		"the empty key":        {nil, ofKeys("r", ""), new(toMax(7)), hash{`["r",""]`: `{"max":7}`}, ""},
		"a spelled key":        {hash{`["r", "a"]`: `{"mode": "shadow"}`}, ofKeys("r", "a"), new(toMax(7)), hash{`["r", "a"]`: `{"max":7,"mode":"shadow"}`}, ""},
		"a strange rule":       {nil, ofRule("[x"), new(toMax(7)), hash{`["[x"]`: `{"max":7}`}, ""},
		"all limits":           {nil, ofRule(All), &Edit{Set: rule.KeyOverride{Enabled: new(false)}}, hash{"*": `{"enabled":false}`}, ""},
		"for a time":           {nil, ofRule("r"), new(timed(toMax(7))), hash{"r": `{"max":7` + until}, ""},
		"for the same time":    {hash{"r": `{"max":7` + until}, ofRule("r"), new(timed(shadow)), hash{"r": `{"max":7,"mode":"shadow"` + until}, ""},
		"the end stays":        {hash{"r": `{"max":7` + until}, ofRule("r"), new(toMax(8)), hash{"r": `{"max":8` + until}, ""},
		"for ever now":         {hash{"r": `{"max":7` + until}, ofRule("r"), new(endless(toMax(8))), hash{"r": `{"max":8}`}, ""},
		"after its end":        {hash{"r": `{"max": 7` + past}, ofRule("r"), &shadow, hash{"r": `{"mode":"shadow"}`}, ""},
		"what held then stays": {hash{"r": `{"max": 7, "max_then": 9` + past}, ofRule("r"), &shadow, hash{"r": `{"max":9,"mode":"shadow"}`}, ""},
		"another for a time":   {hash{"r": `{"max": 7}`}, ofRule("r"), new(timed(shadow)), hash{"r": `{"max":7,"mode":"shadow","mode_` + until[2:]}, ""},
		"another without end":  {hash{"r": `{"max":7` + until}, ofRule("r"), &shadow, hash{"r": `{"max":7,"max_` + until[2:len(until)-1] + `,"mode":"shadow"}`}, ""},
		"more for a time":      {hash{"r": `{"max": 7}`}, ofRule("r"), new(timed(toMax(8))), hash{"r": `{"max":8,"max_then":7` + until}, ""},
		"still more":           {hash{"r": `{"max":8,"max_then":7` + until}, ofRule("r"), new(timed(toMax(9))), hash{"r": `{"max":9,"max_then":7` + until}, ""},

		"a burst":                {hash{"r": `{"max": 7}`}, ofRule("b"), &Edit{Set: rule.KeyOverride{Burst: new(int64(9))}}, hash{"r": `{"max": 7}`, "b": `{"burst":9}`}, ""},
		"a share":                {hash{"r": `{"max": 7}`}, ofShares("b", "t"), &weigh, hash{"r": `{"max": 7}`, `["b","share","t"]`: `{"weight":4}`}, ""},
		"a share for a time":     {hash{`["b", "share", "t"]`: `{"weight": 2}`}, ofShares("b", "t"), new(timed(weigh)), hash{`["b", "share", "t"]`: `{` + until[1:len(until)-1] + `,"weight":4,"weight_then":2}`}, ""},
		"a key beside it":        {hash{`["b","share","t"]`: `{"weight":4}`}, ofKeys("b", "t"), new(toMax(7)), hash{`["b","share","t"]`: `{"weight":4}`, `["b","t"]`: `{"max":7}`}, ""},
		"a max of a share":       {nil, ofShares("b", "t"), new(toMax(7)), nil, "a share has a weight alone"},
		"a block of a share":     {nil, ofShares("b", "t"), &block, nil, "block and allow are for keys"},
		"a weight of a rule":     {nil, ofRule("b"), &weigh, nil, "a weight is of a share"},
		"a weight of a key":      {nil, ofKeys("b", "t"), &weigh, nil, "a weight is of a share"},
		"a share of all":         {nil, ofShares(All, "t"), &weigh, nil, "says enabled only"},
		"a share of no division": {nil, ofShares("r", "t"), &weigh, nil, "the rule divides nothing"},
		"a burst of a log":       {nil, ofRule("r"), &Edit{Set: rule.KeyOverride{Burst: new(int64(9))}}, nil, "burst: a sliding-log"},
		"a weight of 0":          {nil, ofShares("b", "t"), &Edit{Set: rule.KeyOverride{Weight: new(int64(0))}}, nil, "weight 0 is not between"},

		"block a quota":     {hash{`["r","a"]`: `{"max": 7}`}, ofKeys("r", "a"), &block, hash{`["r","a"]`: `{"block":true,"max":7}`}, ""},
		"block for a time":  {hash{`["r","a"]`: `{"max": 7}`}, ofKeys("r", "a"), new(timed(block)), hash{`["r","a"]`: `{"block":true,"block_` + until[2:len(until)-1] + `,"max":7}`}, ""},
		"blocked anyway":    {hash{`["r","a"]`: `{"block":true}`}, ofKeys("r", "a"), new(timed(block)), hash{`["r","a"]`: `{"block":true,"block_then":true` + until}, ""},
		"allowed anyway":    {hash{`["r","a"]`: `{"allow":true,"max":7}`}, ofKeys("r", "a"), new(timed(allow)), hash{`["r","a"]`: `{"allow":true,"allow_then":true,"allow_` + until[2:len(until)-1] + `,"max":7}`}, ""},
		"blocked longer":    {hash{`["r","a"]`: `{"block":true,"block_then":true` + until}, ofKeys("r", "a"), &Edit{Block: true, Until: soon.Add(time.Hour)}, hash{`["r","a"]`: `{"block":true,"block_then":true,"until":"` + soon.Add(time.Hour).UTC().Format(time.RFC3339) + `"}`}, ""},
		"blocked for good":  {hash{`["r","a"]`: `{"block":true` + until}, ofKeys("r", "a"), new(endless(block)), hash{`["r","a"]`: `{"block":true}`}, ""},
		"still blocked":     {hash{`["r","a"]`: `{"block":true,"block_then":true` + past}, ofKeys("r", "a"), new(toMax(7)), hash{`["r","a"]`: `{"block":true,"max":7}`}, ""},
		"unblock for good":  {hash{`["r","a"]`: `{"block":true,"block_then":true` + until}, ofKeys("r", "a"), without("block"), hash{}, ""},
		"unblock":           {hash{`["r","a"]`: `{"block": true, "max": 7, "max_then": 5, "max_` + until[2:]}, ofKeys("r", "a"), without("block"), hash{`["r","a"]`: `{"max":7,"max_then":5` + until}, ""},
		"unblock a key":     {hash{`["r","a"]`: `{"block": true}`}, ofKeys("r", "a"), without("block"), hash{}, ""},
		"allow the blocked": {hash{`["r","a"]`: `{"block": true}`}, ofKeys("r", "a"), &allow, hash{`["r","a"]`: `{"allow":true,"block":true}`}, ""},
		"block a rule":      {nil, ofRule("r"), &block, nil, "block and allow are for keys"},
		"an unknown field":  {nil, ofRule("r"), without("mx"), nil, "unknown field"},

		"remove a rule":          {hash{"r": `{"max": 7}`, "s": `{}`}, ofRule("r"), nil, hash{"s": `{}`}, ""},
		"remove a key":           {hash{`["r", "a"]`: `{"max": 7}`}, ofKeys("r", "a"), nil, hash{}, ""},
		"remove beside a key":    {hash{"r": `{"max": 7}`, `["r","a"]`: `{}`}, ofRule("r"), nil, hash{`["r","a"]`: `{}`}, ""},
		"remove a share":         {hash{`["b","share","t"]`: `{}`, `["b","share","u"]`: `{}`}, ofShares("b", "t"), nil, hash{`["b","share","u"]`: `{}`}, ""},
		"remove keys of a rule":  {hash{"r": `{"keys": {}}`, "s": `{}`}, ofRule("r"), nil, hash{"s": `{}`}, ""},
		"remove what is broken":  {hash{"r": `{`, "s": `{`}, ofRule("r"), nil, hash{"s": `{`}, ""},
		"remove what is twice":   {hash{`["r"]`: `{}`, "r": `{}`}, ofRule("r"), nil, hash{}, ""},
		"remove all limits":      {hash{"*": `{"enabled": false}`}, ofRule(All), nil, hash{}, ""},
		"a rule forbids it":      {nil, ofRule("r"), new(toMax(rule.MaxLog + 1)), nil, "the maximum of a sliding-log"},
		"no rule could":          {nil, ofRule("other"), new(toMax(-1)), nil, "max -1 is not between"},
		"no key is like that":    {nil, ofKeys("r", "a*b"), new(toMax(1)), nil, "a * before the end"},
		"not UTF-8":              {nil, ofKeys("r", "\xff"), new(toMax(1)), nil, "as %XX"},
		"another field is wrong": {hash{"s": `{"windw": "5s"}`}, ofRule("r"), new(toMax(1)), nil, `field "s": line 1: unknown field "windw"`},
		"the field is wrong":     {hash{"r": `max`}, ofRule("r"), new(toMax(1)), nil, "remove this override first"},
		"a max of all":           {nil, ofRule(All), new(toMax(1)), nil, "says enabled only"},
		"no change":              {nil, ofRule("r"), new(Edit{}), nil, "no field"},
		"no rule":                {nil, ofRule(""), new(toMax(1)), nil, "no rule is named"},
		"an end that is over":    {nil, ofRule("r"), &Edit{Set: toMax(1).Set, Until: time.Unix(1e9, 0)}, nil, "is over"},
	} {
		t.Run(name, func(t *testing.T) {
			for field, value := range test.before {
				client.HSet(ctx, name, field, value)
			}
			editor := NewEditor(client, name, r, b)
			want := test.after
			edit := Edit{Remove: true}
			if test.change != nil {
				edit = *test.change
			}
			edit.Target = test.target
			trial := edit
			trial.Try = true
			tried, _ := editor.Edit(ctx, trial)
			if now := hash(client.HGetAll(ctx, name).Val()); len(now) != len(test.before) || len(now) > 0 && !cmp.Equal(now, test.before) {
				t.Errorf("a trial has changed it to %v", now)
			}
			done, err := editor.Edit(ctx, edit)
			if edit.Remove && !done.Found {
				t.Error("nothing was found")
			}
			if again, err := editor.Edit(ctx, edit); edit.Remove && (again.Found || err != nil) {
				t.Errorf("removed again: %t, %v", again.Found, err)
			}
			tried.ID = done.ID
			if !cmp.Equal(tried, done) {
				t.Errorf("tried %+v, done %+v", tried, done)
			}
			if test.err != "" {
				want = test.before
			}
			if err == nil != (test.err == "") || err != nil && !strings.Contains(inFull(err).Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
			got := hash(client.HGetAll(ctx, name).Val())
			if want == nil {
				want = hash{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever an editor writes, the source reads back as that, beside all else.
func TestEditorAndSource(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.Start(t).Client(t)
	editor, source := NewEditor(client, "limits"), Redis(client, "limits")
	want := runtime.Overrides{Rules: map[string]rule.Override{}}
	field := func(t *rapid.T, name string) bool { return rapid.Bool().Draw(t, name) }
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom([]string{"a", "[", `["`, "b.C#2", "规则", "<&>"}).Draw(t, "rule")
		pattern := rapid.SampledFrom([]string{"", "*", "a", "a:*", "%2A", "%3A:x", `"]`, "键", "%FF"}).Draw(t, "pattern")
		target := Target{Rule: r}
		if field(t, "keys") {
			target = ofKeys(r, pattern)
		} else if field(t, "shares") {
			target = ofShares(r, pattern)
		}
		var c rule.KeyOverride
		if target.Shares {
			c.Weight = new(rapid.Int64Range(1, rule.MaxWeight).Draw(t, "weight"))
		} else if field(t, "burst") {
			c.Burst = new(rapid.Int64Range(1, rule.MaxCount).Draw(t, "burst"))
		}
		if !target.Shares && field(t, "max") {
			c.Max = new(rapid.Int64Range(0, rule.MaxCount).Draw(t, "max"))
		}
		if !target.Shares && field(t, "enabled") {
			c.Enabled = new(field(t, "on"))
		}
		if !target.Shares && field(t, "window") {
			c.Window = new(time.Duration(rapid.Int64Range(int64(rule.MinWindow), int64(rule.MaxWindow)).Draw(t, "window")))
		}
		if c == (rule.KeyOverride{}) || !target.Shares && field(t, "mode") {
			c.Mode = new(rapid.SampledFrom([]runtime.Mode{runtime.ModeEnforce, runtime.ModeSoft, runtime.ModeShadow}).Draw(t, "mode"))
		}
		if _, err := editor.Edit(ctx, Edit{Target: target, Set: c}); err != nil {
			t.Fatal(err)
		}
		entry := want.Rules[r]
		all, patterns := ownOf(entry), patternsOf(&entry, target.list())
		if target.list() != "" {
			all = (*patterns)[pattern]
		}
		all.Max, all.Burst, all.Weight = stdcmp.Or(c.Max, all.Max), stdcmp.Or(c.Burst, all.Burst), stdcmp.Or(c.Weight, all.Weight)
		all.Enabled, all.Window, all.Mode = stdcmp.Or(c.Enabled, all.Enabled), stdcmp.Or(c.Window, all.Window), stdcmp.Or(c.Mode, all.Mode)
		if target.list() == "" {
			entry = overrideOf(all, entry)
		} else if *patterns == nil {
			*patterns = map[string]rule.KeyOverride{pattern: all}
		} else {
			(*patterns)[pattern] = all
		}
		want.Rules[r] = entry
		got, err := source.Overrides(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		entries, err := editor.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Target == target && e.KeyOverride != all {
				if diff := cmp.Diff(all, e.KeyOverride); diff != "" {
					t.Errorf("listed (-want +got):\n%s", diff)
				}
			}
		}
	})
}

// Many editors at the same time lose no change.
func TestEditorsTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.StartCluster(t).Client(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 10 {
				for {
					edit := toMax(int64(n))
					edit.Target = ofKeys("r", fmt.Sprint(i))
					_, err := NewEditor(client, "limits").Edit(ctx, edit)
					if err == nil {
						break
					}
					if !strings.Contains(err.Error(), "try again") {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	entries, err := NewEditor(client, "limits").List(ctx)
	if err != nil || len(entries) != 4 {
		t.Fatalf("got %v, %v", entries, err)
	}
	for i, e := range entries {
		if e.Target != ofKeys("r", fmt.Sprint(i)) || *e.Max != 9 {
			t.Errorf("entry %d is %+v", i, e)
		}
	}
}

// Without Redis an edit says so.
func TestEditorWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := server.Client(t)
	client.Set(context.Background(), "text", "", 0)
	edit := toMax(1)
	edit.Target = ofRule("r")
	if _, err := NewEditor(client, "text").Edit(context.Background(), edit); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("a key of another type: %v", err)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := NewEditor(client, "limits").Edit(ctx, Edit{Target: ofRule("r"), Remove: true}); err == nil {
		t.Errorf("got %v", err)
	}
}
