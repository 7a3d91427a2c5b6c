package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
)

// An inspected is all that is known about one key.
type inspected struct {
	keyState
	Namespace string          `json:"namespace"`
	RedisKey  string          `json:"redis_key"`
	Exists    bool            `json:"exists"` // something is counted or kept for it
	Bytes     int64           `json:"bytes"`
	ExpiryMS  int64           `json:"expiry_ms"` // -1: it has no expiry
	Declared  string          `json:"declared"`  // file and line
	Overrides []overrideEntry `json:"overrides"` // those in force for the key, of the rule and of one pattern
}

// inspect prints what is known about a key.
func inspect(ctx context.Context, o *operator, args []string) error {
	d, limit, key, err := o.limitNamed(args)
	if err != nil {
		return err
	}
	s := inspected{Namespace: o.namespace, RedisKey: o.limiter.RedisKey(limit), Declared: d.place}
	if s.keyState, err = o.state(ctx, d, key); err != nil {
		return err
	}
	expiry, err := o.client.PTTL(ctx, s.RedisKey).Result()
	if err != nil {
		return o.explained(err)
	}
	if s.Exists = expiry != -2; s.Exists {
		s.ExpiryMS = expiry.Milliseconds()
		if expiry < 0 { // -1 ns says that there is none
			s.ExpiryMS = -1
		}
		s.Bytes, _ = o.client.MemoryUsage(ctx, s.RedisKey).Result() // not every user may ask
	}
	if s.Overrides, err = o.inForce(ctx, d, key); err != nil {
		return err
	}
	if o.json() {
		return o.printJSON(s)
	}
	return s.print(o, d)
}

func (s *inspected) print(o *operator, d declared) error {
	state, row := s.State+s.because(), s.row()
	if s.Shadow && s.State != "off" {
		state += ", but the rule is in shadow mode and refuses nobody"
	}
	limit := "the limit is removed"
	switch {
	case s.Limit != nil:
		limit = fmt.Sprintf("%d, %d left", *s.Limit, *s.Remaining)
	case s.State != "off": // and calls bring their own
		limit = "each call brings its own, " + d.byCall + ": say which with -max"
	}
	kept := "nothing is kept for it in " + namespaces(s.Namespace)
	if s.Exists {
		kept = fmt.Sprintf("%d bytes, gone in %v", s.Bytes, shortDuration(time.Duration(s.ExpiryMS)*time.Millisecond))
		if s.ExpiryMS < 0 {
			kept = fmt.Sprintf("%d bytes, without an expiry: see ratectl fix-expiry", s.Bytes)
		}
	}
	rows := [][]string{
		{"rule", s.Rule + ", " + s.Declared}, {"counts as", d.Algorithm.String() + " over " + d.per()}, {"key", s.Key}, {"state", state}, {"limit", limit},
		{"used", strconv.FormatInt(s.Used, 10)}, {"retry after", row[3]}, {"reset after", row[4]},
		{"redis key", s.RedisKey}, {"redis", kept},
	}
	if o.overrides == "" {
		rows = append(rows, []string{"override", "not read: -overrides names the hash"})
	}
	for _, e := range s.Overrides {
		rows = append(rows, []string{"override", e.describe()})
	}
	return o.printTable("", rows)
}

// inForce returns the overrides that a key is subject to.
func (o *operator) inForce(ctx context.Context, d declared, key *runtime.Key) ([]overrideEntry, error) {
	found := []overrideEntry{}
	if o.overrides == "" {
		return found, nil
	}
	entries, err := o.entries(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	entries = slices.DeleteFunc(entries, func(e override.Entry) bool { return e.At(now) == runtime.KeyOverride{} })
	patterns := make(map[string]bool)
	for _, e := range entries {
		if e.Rule == d.Name && e.Keys {
			patterns[e.Pattern] = true
		}
	}
	best, is := matching(patterns, key.Pattern())
	for _, e := range entries {
		if e.Rule == override.All || e.Rule == d.Name && (!e.Keys || is && e.Pattern == best) {
			found = append(found, entryOf(e.Target, e.Change))
		}
	}
	return found, nil
}
