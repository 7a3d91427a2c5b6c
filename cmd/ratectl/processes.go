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

	versions []string // of the overrides in force, of each that follows
	others   []string // what the others follow
}

// processes returns what the processes report to Redis.
func (o *operator) processes(ctx context.Context) ([]runtime.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	return o.store.Processes(ctx, o.namespace)
}

// following asks Redis who follows the hash.
func (o *operator) following(ctx context.Context) (following, error) {
	processes, err := o.processes(ctx)
	return o.followed(processes), o.explained(err)
}

// followed counts the processes that follow the hash.
func (o *operator) followed(processes []runtime.Process) (f following) {
	f.Processes = len(processes)
	for _, p := range processes {
		if p.Overrides == "redis:"+o.overrides {
			f.Follow, f.versions = f.Follow+1, append(f.versions, p.Version)
		} else {
			f.others = append(f.others, cmp.Or(p.Overrides, "no overrides"))
		}
	}
	slices.Sort(f.others)
	f.others = slices.Compact(f.others)
	return f
}

// current counts the processes that have in force what the hash says now: none if that is
// rejected.
func (o *operator) current(ctx context.Context, f following) (n int) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	says, err := override.Redis(o.client, o.overrides).Overrides(ctx)
	if err != nil {
		return 0
	}
	version := says.Version()
	for _, v := range f.versions {
		if v == version {
			n++
		}
	}
	return n
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
