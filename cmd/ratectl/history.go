package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/override"
)

func recordRow(r operate.Record) []string {
	why, did := r.Why, r.Did
	if r.Undoes > 0 {
		why = strings.TrimSuffix(fmt.Sprintf("undo %d: %s", r.Undoes, why), ": ")
	}
	dash := func(said string) string {
		if said == "" {
			return "-"
		}
		return string(operate.JSONOf(said))
	}
	if r.Several > 0 {
		did = fmt.Sprintf("%d overrides", r.Several)
	}
	return rowOf(r.ID, r.At.UTC().Format(time.RFC3339), cmp.Or(r.Who, "-"), operate.TargetText(r.Target), dash(r.Before), cmp.Or(did, dash(r.After)), cmp.Or(why, "-"))
}

func (s *session) listHistory(ctx context.Context, _ []string) error {
	p := s.asked
	p.Until, p.Most = s.until, s.limit
	if p.Since < 0 || p.Until < 0 || p.Since > 0 && p.Until >= p.Since {
		return usagef("-since %v -until %v: write a duration such as 3h, and for -until a shorter one", p.Since, p.Until)
	}
	records, all, err := s.History(ctx, p)
	if err != nil {
		return err
	}
	if err := printEach(&s.printer, "CHANGE AT WHO OF BEFORE AFTER WHY", records, recordRow); err != nil {
		return err
	}
	if all > len(records) {
		s.logger().Printf("these are the last %d of %d changes, see -limit", len(records), all)
	}
	return nil
}

func (s *session) undo(ctx context.Context, args []string) (err error) {
	id := int64(0)
	if len(args) > 0 {
		if id, err = strconv.ParseInt(args[0], 10, 64); err != nil || id < 1 {
			return usagef("undo %q: write the number of a change, as ratectl history shows it", args[0])
		}
	}
	by := override.Edit{Who: s.author(), Why: s.why, Try: s.dry}
	undone, err := s.Undo(ctx, id, by, func(r override.Record) error {
		if r.Who == by.Who {
			return nil
		}
		return s.confirm(ctx, "undo change %d of %s, by %s%s", r.ID, operate.TargetText(r.Target), cmp.Or(r.Who, "somebody"), strings.TrimSuffix(": "+r.Why, ": "))
	})
	if errors.Is(err, override.ErrNoRecord) {
		err = nothingf("%v; ratectl history lists those that there are", err)
	}
	if err != nil {
		return err
	}
	if s.json() {
		return cmp.Or(s.printJSON(struct {
			Undone operate.Record `json:"undone"`
			DryRun bool           `json:"dry_run,omitempty"`
		}{undone, s.dry}), s.awaited(ctx))
	}
	verb, end := "is", ""
	if s.dry {
		verb, end = "would be", "; nothing is changed"
	}
	who := cmp.Or(undone.Who, "somebody")
	if undone.Several > 0 {
		s.printf("%d overrides %s again as before change %d, by %s%s", undone.Several, strings.ReplaceAll(verb, "is", "are"), undone.ID, who, end)
		return s.awaited(ctx)
	}
	s.printf("%s: the override %s %s again; %d, by %s, had made it %s%s", operate.TargetText(undone.Target), verb, cmp.Or(undone.Before, "gone"), undone.ID, who, cmp.Or(undone.After, "go"), end)
	return s.awaited(ctx)
}
