package documents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
)

// processes tells what the limiters of a namespace have reported.
func (p *program) processes(ctx context.Context, l *process) string {
	found, err := bridge.LimiterOf(l.Limiter).Processes(ctx)
	var all []string
	for _, f := range found {
		var text []string
		for _, r := range f.Rules {
			text = append(text, fmt.Sprintf("%s %s %s called %v", r.Prefix, r.Name, r.Terms, r.Called))
		}
		if !f.Since.IsZero() {
			text = append(text, fmt.Sprintf("follows %s since %v, the last %v", f.Overrides, f.Since.Sub(begin), f.Version == l.board.now.Version()))
		}
		if f.Silent {
			text = append(text, "silent")
		}
		if f.Host == "" || f.Behind != 0 {
			text = append(text, fmt.Sprintf("INCOMPLETE %+v", f))
		}
		c := f.Calls
		text = append(text, fmt.Sprintf("in %.0fs %v decided %v, asked %d", c.Seconds, c.Decided, c.Rules, c.Asked))
		for _, h := range c.Permits {
			text = append(text, fmt.Sprintf("%d of %s by %q since %v", h.Permits, h.Rule, h.Key, h.Since.Sub(begin)))
		}
		all = append(all, strings.Join(text, "; "))
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(all, " | "), Words(err), "none")
}

// refused tells who was refused in each minute, and of more than ten keys of a rule how many they are.
func (p *program) refused(ctx context.Context, l *process) string {
	found, err := bridge.LimiterOf(l.Limiter).RefusedMinutes(ctx, time.Time{})
	keys, sums := map[string][]string{}, map[string]int64{}
	for _, m := range found {
		of := fmt.Sprintf("%s after %v", cmp.Or(m.Rule, "others"), m.Start.Sub(begin))
		if m.Max >= 0 {
			of += fmt.Sprint(" by ", m.Max)
		}
		if m.Shadow {
			of += " in shadow mode"
		}
		keys[of], sums[of] = append(keys[of], fmt.Sprintf("%q %d times", m.Key, m.Count)), sums[of]+m.Count
	}
	var all []string
	for of, texts := range keys {
		if len(texts) > 10 {
			texts = []string{fmt.Sprint(len(texts), " keys ", sums[of], " times")}
		}
		slices.Sort(texts)
		all = append(all, of+": "+strings.Join(texts, ", "))
	}
	slices.Sort(all)
	return cmp.Or(strings.Join(all, " | "), Words(err), "none")
}
