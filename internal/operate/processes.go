package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

func (c *Core) Processes(ctx context.Context) ([]bridge.Process, error) {
	return c.processesIn(ctx, c.Namespace)
}

func (c *Core) processesIn(ctx context.Context, namespace string) ([]bridge.Process, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return bridge.StoreOf(c.Store).Processes(ctx, namespace)
}

// A Following says which of the processes that report to Redis follow a hash with overrides. Those that
// give no sign of life are no part of the counts.
type Following struct {
	Processes int              `json:"report"` // that report
	Follow    int              `json:"follow"`
	InForce   int              `json:"-"` // in how many of these it is as it is now: in none if it is rejected
	Lagging   []bridge.Process `json:"-"` // that follow it, and have another version in force
	Silent    []bridge.Process `json:"-"`
	Others    []string         `json:"-"` // what the others follow
}

// Follow finds out who of processes follows a source of overrides, of which a version is the newest, or
// none if it is rejected.
func Follow(processes []bridge.Process, source, version string) (f Following) {
	for _, p := range processes {
		if p.Silent {
			f.Silent = append(f.Silent, p)
			continue
		}
		if source == "" || p.Overrides != source {
			f.Others = append(f.Others, cmp.Or(p.Overrides, "no overrides"))
		} else if version == "" || p.Version != version {
			f.Lagging = append(f.Lagging, p)
			f.Follow++
		} else {
			f.InForce++
			f.Follow++
		}
		f.Processes++
	}
	slices.Sort(f.Others)
	f.Others = slices.Compact(f.Others)
	return f
}

// Following asks Redis who follows the hash that has the overrides.
func (c *Core) Following(ctx context.Context) (Following, error) {
	processes, err := c.Processes(ctx)
	if err != nil {
		return Following{}, err
	}
	editor := override.NewEditor(c.Client, c.Hash)
	version, err := editor.Version(ctx)
	if err != nil && !errors.Is(err, runtime.ErrInvalidOverrides) { // what is rejected is in force nowhere
		return Following{}, err
	}
	return Follow(processes, editor.Source(), version), nil
}

// Await asks again until what the hash says is in force in all processes that follow it and live, or it is
// over, or the context ends.
func (c *Core) Await(ctx context.Context, most time.Duration) (f Following, err error) {
	for over := time.After(most); ; {
		if f, err = c.Following(ctx); err != nil || f.Follow > 0 && f.InForce == f.Follow {
			return f, err
		}
		select {
		case <-over:
			return f, nil
		case <-ctx.Done():
			return f, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (f Following) String() string {
	if f.Processes == 0 {
		return "no process reports to this Redis, in this namespace, which overrides it follows" + f.silent()
	}
	if f.Follow == 0 {
		return fmt.Sprintf("none of the %d processes that report follows the hash: they follow %s%s", f.Processes, strings.Join(f.Others, ", "), f.silent())
	}
	return fmt.Sprintf("%d of the %d processes that report follow the hash%s", f.Follow, f.Processes, f.silent())
}

func (f Following) State() string {
	text := fmt.Sprintf("in force in %d of the %d processes that report and follow the hash", f.InForce, f.Follow)
	for i, p := range f.Lagging {
		if i == 3 {
			return fmt.Sprintf("%s; and %d more%s", text, len(f.Lagging)-i, f.silent())
		}
		text += fmt.Sprintf("; not in %s, which has version %s%s", p.Name, cmp.Or(p.Version, "none"), since(p.Since))
	}
	return text + f.silent()
}

func (f Following) silent() string {
	if len(f.Silent) == 0 {
		return ""
	}
	names := make([]string, 0, 3)
	for _, p := range f.Silent[:min(len(f.Silent), 3)] {
		names = append(names, p.Name+since(p.Alive))
	}
	return fmt.Sprintf("; no sign of life from %d: %s", len(f.Silent), strings.Join(names, ", "))
}

func since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " since " + at.UTC().Format(time.RFC3339)
}

// ReadBy returns an error if it is known that no process reads the keys of one of some rules: those that report
// have the rule under another prefix, not at all, or in another namespace. What is not known it returns in words.
func (c *Core) ReadBy(ctx context.Context, rules []Rule) (unknown string, err error) {
	processes, err := c.living(ctx, c.Namespace)
	if err != nil {
		return "", err
	}
	if len(processes) == 0 {
		return c.readElsewhere(ctx, rules)
	}
	cut := slices.ContainsFunc(processes, func(p bridge.Process) bool { return len(p.Rules) == bridge.MaxReported })
	for _, r := range rules {
		reads, prefixes := prefixesOf(processes, r)
		switch {
		case reads:
		case len(prefixes) > 0:
			return "", Wrongf("the keys of rule %s start with %q in the processes that report, and with %q in the listing: nobody would read them; name the listing of these processes with -rules", r.Name, prefixes[0], r.prefix())
		case !cut:
			return "", Wrongf("none of the %d processes that report in %s has rule %s: nobody would read its keys; see -rules and -namespace", len(processes), Namespaces(c.Namespace), r.Name)
		default:
			unknown = fmt.Sprintf("whether a process has rule %s is not known: one reports no more than %d", r.Name, bridge.MaxReported)
		}
	}
	return unknown, nil
}

// living returns what processes of a namespace report that give signs of life: the others read nothing any more.
func (c *Core) living(ctx context.Context, namespace string) ([]bridge.Process, error) {
	all, err := c.processesIn(ctx, namespace)
	return slices.DeleteFunc(all, func(p bridge.Process) bool { return p.Silent }), err
}

// prefixesOf reports whether a process has a rule as it is listed, and under which other prefixes some have it.
func prefixesOf(processes []bridge.Process, r Rule) (listed bool, others []string) {
	prefix := r.prefix()
	for _, p := range processes {
		for _, of := range p.Rules {
			if of.Name == r.Name && of.Prefix == prefix {
				listed = true
			} else if of.Name == r.Name {
				others = append(others, of.Prefix)
			}
		}
	}
	return listed, others
}

// readElsewhere is ReadBy if no process reports in the namespace: those with such rules may do in another.
func (c *Core) readElsewhere(ctx context.Context, rules []Rule) (unknown string, err error) {
	const alive = "rate_limit:{processes}:alive"
	var names []string
	if err := c.Scan(ctx, []string{"*" + alive}, ScanBatch, func(key string) {
		names = append(names, strings.TrimSuffix(strings.TrimSuffix(key, alive), ":"))
	}); err != nil {
		return "", err
	}
	for _, name := range names {
		processes, err := c.living(ctx, name)
		if err != nil {
			return "", err
		}
		for _, r := range rules {
			if reads, _ := prefixesOf(processes, r); reads {
				return "", Wrongf("no process reports in %s, and those with rule %s do in %s: name that with -namespace", Namespaces(c.Namespace), r.Name, Namespaces(name))
			}
		}
	}
	return "whether a process reads them is not known: none reports in " + Namespaces(c.Namespace), nil
}
