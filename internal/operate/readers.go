package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rategen/rategen/internal/bridge"
)

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
	ctx, cancel := c.within(ctx)
	defer cancel()
	all, err := bridge.StoreOf(c.Store).Processes(ctx, namespace)
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
