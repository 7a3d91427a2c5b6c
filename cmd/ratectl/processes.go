package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// A following says which of the processes that report to Redis follow the hash with overrides.
type following struct {
	Processes int `json:"report"` // that report
	Follow    int `json:"follow"`
	InForce   int `json:"-"` // what the hash says now

	others []string // what the others follow
}

// following asks Redis who follows the hash.
func (o *operator) following(ctx context.Context) (f following, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	processes, err := o.store.Processes(ctx, o.namespace)
	if err != nil || len(processes) == 0 {
		return f, o.explained(err)
	}
	says, err := override.Redis(o.client, o.overrides).Overrides(ctx)
	if f = followed(processes, o.overrides, says.Version()); err != nil {
		f.InForce = 0 // they are rejected
	}
	return f, nil
}

// followed counts the processes that follow a hash, and have a version of overrides in force.
func followed(processes []runtime.Process, hash, version string) (f following) {
	f.Processes = len(processes)
	for _, p := range processes {
		switch {
		case p.Overrides != "redis:"+hash:
			f.others = append(f.others, cmp.Or(p.Overrides, "no overrides"))
		case p.Version == version:
			f.InForce++
			fallthrough
		default:
			f.Follow++
		}
	}
	slices.Sort(f.others)
	f.others = slices.Compact(f.others)
	return f
}

// inForce says where what the hash says is in force.
func (f following) inForce() string {
	if f.Follow == 0 {
		return f.String()
	}
	return fmt.Sprintf("in force in %d of the %d processes that report and follow the hash", f.InForce, f.Follow)
}

// String says it in words.
func (f following) String() string {
	switch {
	case f.Processes == 0:
		return "no process reports to this Redis, in this namespace, which overrides it follows"
	case f.Follow == 0:
		return fmt.Sprintf("none of the %d processes that report follows the hash: they follow %s", f.Processes, strings.Join(f.others, ", "))
	}
	return fmt.Sprintf("%d of the %d processes that report follow the hash", f.Follow, f.Processes)
}
