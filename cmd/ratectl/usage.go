package main

import (
	"context"
	"strconv"
	"time"
)

// usage prints what is left to a caller.
func usage(ctx context.Context, o *operator, args []string) error {
	d, _, key, err := o.limitNamed(args)
	if err != nil {
		return err
	}
	s, err := o.state(ctx, d, key)
	if err != nil {
		return err
	}
	err = printEach(o, "LIMIT USED LEFT WINDOW RESET STATE", []keyState{s}, func(s keyState) []string {
		limit, left := "-", "-"
		if s.Limit != nil {
			limit, left = strconv.FormatInt(*s.Limit, 10), strconv.FormatInt(*s.Remaining, 10)
		}
		row := s.row()
		return []string{limit, strconv.FormatInt(s.Used, 10), left, s.Window, shortDuration(time.Duration(s.ResetMS) * time.Millisecond), row[1]}
	})
	if err != nil || o.json() || len(s.Past) == 0 {
		return err
	}
	var rows [][]string
	for _, p := range s.Past {
		rows = append(rows, []string{p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339), strconv.FormatInt(p.Used, 10)})
	}
	return o.printTable("START END USED", rows)
}
