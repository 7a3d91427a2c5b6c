package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
)

type inspected struct {
	operate.State
	Namespace string             `json:"namespace"`
	RedisKey  string             `json:"redis_key"`
	Exists    bool               `json:"exists"` // something is counted or kept for it
	Bytes     int64              `json:"bytes"`
	ExpiryMS  int64              `json:"expiry_ms"` // -1: it has no expiry
	Declared  string             `json:"declared"`  // file and line
	Overrides []operate.Override `json:"overrides"` // those in force for the key, of the rule and of one pattern
	// Holders are whose calls hold permits, of which each process tells the fifty keys that it has held for longest.
	Holders []operate.Holder `json:"held_by,omitempty"`
	operate.Divided
}

func (s *session) inspect(ctx context.Context, args []string) error {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return err
	}
	s.Compare(ctx)
	s.sayDiffering(d.Name)
	i := inspected{Namespace: s.Namespace, RedisKey: bridge.LimiterOf(s.Limiter).RedisKey(s.LimitOf(d, key)), Declared: d.Place}
	if i.State, err = s.State(ctx, d, key); err != nil {
		return err
	}
	expiry, err := s.Client.PTTL(ctx, i.RedisKey).Result()
	if err != nil {
		return err
	}
	if i.Exists = expiry != -2; i.Exists {
		i.ExpiryMS = expiry.Milliseconds()
		if expiry < 0 { // -1 ns says that there is none
			i.ExpiryMS = -1
		}
		i.Bytes, _ = s.Client.MemoryUsage(ctx, i.RedisKey).Result() // not every user may ask
	}
	if algorithm.RowOf(d.Algorithm).Is(algorithm.Lends) {
		processes, err := s.Processes(ctx)
		if err != nil {
			s.logger().Printf("who holds permits is not known: %v", s.explained(err))
		}
		i.Holders = operate.HoldersOf(processes, d.Name, key.String(), s.Hidden(key.String()))
	}
	if i.Divided, err = operate.SharesOf(ctx, s.Limiter, d.Rule, key); err != nil {
		return err
	}
	entries, err := s.Deciding(ctx)
	if err != nil {
		return err
	}
	i.Overrides = operate.InForce(entries, d, key)
	unknown := error(nil)
	if !i.Exists && !slices.ContainsFunc(i.Overrides, func(o operate.Override) bool { return o.Keys }) {
		unknown = nothingf("nobody knows this key: nothing is counted for it, and no override is for it")
	}
	if s.json() {
		return cmp.Or(s.printJSON(i), unknown)
	}
	rows := i.rows(d)
	for _, h := range i.Holders {
		rows = append(rows, []string{"permits", h.String()})
	}
	for _, t := range i.Shares {
		rows = append(rows, []string{"share", printed.Text(t.String())})
	}
	if n := i.SharesTotal - int64(len(i.Shares)); n > 0 {
		rows = append(rows, []string{"shares", fmt.Sprintf("and %d more", n)})
	}
	if s.Hash == "" {
		rows = append(rows, []string{"override", "not read: -overrides names the hash"})
	}
	for _, o := range i.Overrides {
		rows = append(rows, []string{"override", o.String()})
	}
	return cmp.Or(s.printTable("", rows), unknown)
}

func (i *inspected) rows(d operate.Rule) [][]string {
	state, row := i.State.State+because(i.State), stateRow(i.State)
	if i.Shadow && i.State.State != operate.Off {
		state += ", but the rule is in shadow mode and refuses nobody"
	}
	limit := "the limit is removed"
	if i.Limit != nil {
		limit = fmt.Sprintf("%d, %d left", *i.Limit, *i.Remaining)
		if i.StandsIn {
			limit += ", by the max of the last refusal"
		}
	} else if i.State.State == operate.Broken {
		limit = "not known"
	} else if i.State.State != operate.Off { // and calls bring their own
		limit = "each call brings its own, " + d.ByCall + ": say which with -max"
	}
	if i.Differs != "" {
		limit += "; processes have " + i.Differs
	}
	kept := "nothing is kept for it in " + operate.Namespaces(i.Namespace)
	if i.Exists {
		kept = fmt.Sprintf("%d bytes, gone in %v", i.Bytes, operate.ShortDuration(time.Duration(i.ExpiryMS)*time.Millisecond))
		if i.ExpiryMS < 0 {
			kept = fmt.Sprintf("%d bytes, without an expiry: see ratectl fix-expiry", i.Bytes)
		}
	}
	return [][]string{
		{"rule", strings.TrimSuffix(i.Rule+", "+i.Declared, ", ")}, {"counts as", d.Algorithm.String() + " over " + d.Per()}, {"key", i.Key}, {"state", state}, {"limit", limit},
		{"used", usedOf(i.State)}, {"retry after", row[3]}, {"reset after", row[4]},
		{"redis key", i.RedisKey}, {"redis", kept},
	}
}

func (s *session) usage(ctx context.Context, args []string) error {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return err
	}
	s.Compare(ctx)
	s.sayDiffering(d.Name)
	k, err := s.State(ctx, d, key)
	if err == nil && k.State == operate.Broken {
		err = fmt.Errorf("%s of rule %s is broken%s", printed.Text(k.Key), d.Name, because(k))
	}
	if err != nil {
		return err
	}
	err = printEach(&s.printer, "LIMIT USED LEFT WINDOW RESET STATE", []operate.State{k}, func(k operate.State) []string {
		row := stateRow(k)
		if k.Limit == nil {
			return []string{"-", usedOf(k), "-", k.Window, row[4], row[1]}
		}
		limit := fmt.Sprint(*k.Limit)
		if k.Differs != "" {
			limit = k.Differs
		}
		return rowOf(limit, usedOf(k), *k.Remaining, k.Window, row[4], row[1])
	})
	if err != nil || s.json() || len(k.Past) == 0 {
		return err
	}
	var rows [][]string
	for _, p := range k.Past {
		rows = append(rows, rowOf(p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), p.Used))
	}
	return s.printTable("START END USED", rows)
}
