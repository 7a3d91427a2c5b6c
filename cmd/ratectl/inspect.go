package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
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
func (s *session) inspect(ctx context.Context, args []string) error {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return err
	}
	i := inspected{Namespace: s.namespace, RedisKey: s.limiter.RedisKey(s.limitOf(d, key)), Declared: d.place}
	if i.keyState, err = s.stateOrBroken(ctx, d, key); err != nil {
		return err
	}
	expiry, err := s.client.PTTL(ctx, i.RedisKey).Result()
	if err != nil {
		return err
	}
	if i.Exists = expiry != -2; i.Exists {
		i.ExpiryMS = expiry.Milliseconds()
		if expiry < 0 { // -1 ns says that there is none
			i.ExpiryMS = -1
		}
		i.Bytes, _ = s.client.MemoryUsage(ctx, i.RedisKey).Result() // not every user may ask
	}
	entries, err := s.decidingEntries(ctx)
	if err != nil {
		return err
	}
	i.Overrides = inForce(entries, d, key)
	if s.json() {
		return s.printJSON(i)
	}
	rows := i.rows(d)
	if s.overrides == "" {
		rows = append(rows, []string{"override", "not read: -overrides names the hash"})
	}
	for _, e := range i.Overrides {
		rows = append(rows, []string{"override", e.describe()})
	}
	return s.printTable("", rows)
}

// rows says all but the overrides.
func (s *inspected) rows(d declared) [][]string {
	state, row := s.State+s.because(), s.row()
	if s.Shadow && s.State != "off" {
		state += ", but the rule is in shadow mode and refuses nobody"
	}
	limit := "the limit is removed"
	switch {
	case s.Limit != nil:
		limit = fmt.Sprintf("%d, %d left", *s.Limit, *s.Remaining)
	case s.State == "broken":
		limit = "not known"
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
	return [][]string{
		{"rule", s.Rule + ", " + s.Declared}, {"counts as", d.Algorithm.String() + " over " + d.per()}, {"key", s.Key}, {"state", state}, {"limit", limit},
		{"used", s.used()}, {"retry after", row[3]}, {"reset after", row[4]},
		{"redis key", s.RedisKey}, {"redis", kept},
	}
}

// usage prints what is left to a caller.
func (s *session) usage(ctx context.Context, args []string) error {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return err
	}
	k, err := s.stateOrBroken(ctx, d, key)
	if err == nil && k.State == "broken" {
		err = fmt.Errorf("%s of rule %s is broken%s", printable(k.Key), d.Name, k.because())
	}
	if err != nil {
		return err
	}
	err = printEach(&s.printer, "LIMIT USED LEFT WINDOW RESET STATE", []keyState{k}, func(k keyState) []string {
		limit, left := "-", "-"
		if k.Limit != nil {
			limit, left = strconv.FormatInt(*k.Limit, 10), strconv.FormatInt(*k.Remaining, 10)
		}
		row := k.row()
		return []string{limit, k.used(), left, k.Window, row[4], row[1]}
	})
	if err != nil || s.json() || len(k.Past) == 0 {
		return err
	}
	var rows [][]string
	for _, p := range k.Past {
		rows = append(rows, []string{p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), strconv.FormatInt(p.Used, 10)})
	}
	return s.printTable("START END USED", rows)
}
