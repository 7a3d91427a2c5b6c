package crossing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// An edit changes the override of a rule, or of keys of it, as an operator does.
type edit struct {
	override.Edit
	For time.Duration // 0: for ever
}

// String returns what is edited, and how.
func (e edit) String() string {
	return fmt.Sprintf("edit %+v: %s block=%t allow=%t for %v, endless=%t clear=%v remove=%t", e.Target, document.Fields(e.Set), e.Block, e.Allow, e.For, e.Endless, e.Clear, e.Remove)
}

// drawEdit draws an edit of the override of a rule or of some of its keys.
func (s *scope) drawEdit(t *rapid.T, p *program) edit {
	var x edit
	r := rapid.SampledFrom([]int{0, 0, len(p.Rules) - 1}).Draw(t, "rule")
	x.Rule = p.Rules[r].Name
	x.Pattern = rapid.SampledFrom([]string{"0", "0", "0", "0*", "*", ""}).Draw(t, "pattern")
	x.Keys = x.Pattern != ""
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if kind == 0 {
		x.Remove = true
		return x
	}
	if kind == 1 {
		x.Clear = []string{rapid.SampledFrom([]string{"max", "window", "mode", "enabled", "block", "allow"}).Draw(t, "field")}
		return x
	}
	if kind < 6 && x.Keys {
		x.Block = rapid.IntRange(0, 2).Draw(t, "block") > 0
		x.Allow = !x.Block
	} else {
		for x.Set == (rule.KeyOverride{}) { // a rule in shadow mode has no other
			x.Set = s.drawOverride(t, p.Rules[r])
		}
	}
	if x.For = s.window / 4 * time.Duration(rapid.IntRange(-2, 6).Draw(t, "for")); x.For <= 0 {
		x.Endless, x.For = x.For < 0, 0
	}
	return x
}

// An edited is what edits have made of the overrides, by targets and fields.
type edited map[override.Target]map[string]setting

// A setting is the value of a field: for ever, and another one until an end.
type setting struct {
	always, now any
	end         time.Time
}

// at returns the value at a time, or nil.
func (s setting) at(now time.Time) any {
	if now.Before(s.end) {
		return s.now
	}
	return s.always
}

// apply makes an edit at a time.
func (e edited) apply(x edit, now time.Time) {
	fields := maps.Clone(e[x.Target])
	if fields == nil || x.Remove {
		fields = map[string]setting{}
	}
	for _, name := range x.Clear {
		delete(fields, name)
	}
	for name, value := range valuesOf(x.Set, x.Block, x.Allow) {
		s := fields[name]
		lasting := now.Before(s.end)
		if x.For > 0 {
			s.now, s.end = value, now.Add(x.For)
		} else if x.Endless || !lasting {
			s = setting{always: value}
		} else {
			s.now = value
		}
		fields[name] = s
	}
	e[x.Target] = fields
}

func valuesOf(o rule.KeyOverride, block, allow bool) map[string]any {
	values := map[string]any{"enabled": o.Enabled, "max": o.Max, "window": o.Window, "mode": o.Mode, "block": block, "allow": allow}
	maps.DeleteFunc(values, func(_ string, value any) bool {
		return value == (*bool)(nil) || value == (*int64)(nil) || value == (*time.Duration)(nil) || value == (*runtime.Mode)(nil) || value == false
	})
	return values
}

// at returns what is in force at a time.
func (e edited) at(p *program, now time.Time) map[int]rule.Override {
	all := map[int]rule.Override{}
	for i, r := range p.Rules {
		var o rule.Override
		if of := e[override.Target{Rule: r.Name}]; of != nil {
			k := inForceOf(of, now)
			o.Enabled, o.Max, o.Window, o.Mode = k.Enabled, k.Max, k.Window, k.Mode
		}
		o.Keys = map[string]rule.KeyOverride{}
		for target, of := range e {
			if k := inForceOf(of, now); target.Rule == r.Name && target.Keys && k != (rule.KeyOverride{}) {
				o.Keys[target.Pattern] = k
			}
		}
		all[i] = o
	}
	return all
}

// inForceOf returns what fields say at a time.
func inForceOf(fields map[string]setting, now time.Time) (k rule.KeyOverride) {
	k.Enabled, _ = fields["enabled"].at(now).(*bool)
	k.Max, _ = fields["max"].at(now).(*int64)
	k.Window, _ = fields["window"].at(now).(*time.Duration)
	k.Mode, _ = fields["mode"].at(now).(*runtime.Mode)
	if fields["block"].at(now) == true {
		k.Enabled, k.Max, k.Mode = new(true), new(int64(0)), new(runtime.ModeEnforce)
	} else if fields["allow"].at(now) == true {
		k.Enabled = new(false)
	}
	return k
}

// keyOverride returns the override of the pattern that a key goes by: itself, or the longest
// that matches.
func keyOverride(keys map[string]rule.KeyOverride, key int) rule.KeyOverride {
	name := use{Key: key}.name()
	for _, pattern := range []string{name, name + "*", "*"} { // all that programs have
		if k, is := keys[pattern]; is {
			return k
		}
	}
	return rule.KeyOverride{}
}

// run makes the edit, and notes what is in force from then on, and from its end on.
func (e edit) run(p *process) {
	w, is := p.world.(*wire)
	if !is {
		return // what edits mean is the same in all worlds
	}
	now := w.clock().Truncate(time.Microsecond)
	if err := w.edit(e, now); err != nil {
		p.history.contradict("a valid edit is made", "%v: %v", e, err)
		return
	}
	p.note("# %v", e)
	p.edited.apply(e, now)
	p.changed(now)
	if e.For > 0 {
		p.calls.Go(func() {
			time.Sleep(e.For)
			p.changed(now.Add(e.For))
		})
	}
	p.sleep(3*p.history.scope.poll(), 0) // each limiter polls meanwhile
}

// changed notes what edits have in force from now on, soon.
func (r *running) changed(now time.Time) {
	h := r.history
	h.mu.Lock()
	defer h.mu.Unlock()
	at := r.now()
	h.changes = append(h.changes, &happening{from: at, to: at + 3*h.scope.poll(), rules: r.edited.at(r.program, now)})
	slices.SortStableFunc(h.changes, func(a, b *happening) int { return cmp.Compare(a.from, b.from) })
}
