package plan

import (
	"fmt"
	"hash/fnv"
)

// Version returns a short text that is the same for overrides that say the same, whatever their
// order is.
func (o *Overrides) Version() string {
	sum := uint64(0)
	add := func(parts ...string) {
		h := fnv.New64a()
		for _, part := range parts {
			_, _ = h.Write([]byte(part + "\x00"))
		}
		sum += h.Sum64()
	}
	if o.Off {
		add("off")
	}
	for name, c := range o.Rules {
		add(name, c.text())
	}
	for _, of := range []map[string]*KeyOverrides{o.Keys, o.Shares} {
		for name, k := range of {
			texts := make([]string, len(k.changes))
			for i, c := range k.changes {
				texts[i] = c.text()
			}
			for p, change := range k.table.All() {
				add(name, p.Text, fmt.Sprint(p.Prefix), texts[change])
			}
		}
	}
	return fmt.Sprintf("%016x", sum)
}

// text returns what the change says. Programs without a burst or weight of overrides say the same of one
// that has neither.
func (c Change) text() string {
	text := fmt.Sprintf("{%d %v %d %d}", c.Max, c.Window, c.Mode, c.Enabled)
	if c.Burst != 0 || c.Weight != 0 {
		text += fmt.Sprint(c.Burst, c.Weight)
	}
	return text
}
