package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/algorithm"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/replay"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

func proposalRow(p replay.Proposal) []string {
	return []string{percent(p.Share) + " of the " + p.Of, p.Algorithm, strconv.FormatInt(p.Max, 10), strconv.FormatInt(p.Refused, 10),
		strconv.Itoa(p.Hit), percent(p.AtMost), strconv.FormatInt((p.Bytes+1023)/1024, 10) + " KiB"}
}

const proposalHead = "REFUSES ALGORITHM MAX CALLS CALLERS AT-MOST REDIS"

func (s *session) propose(ctx context.Context, args []string) error {
	if s.given("max") {
		return usagef("propose finds the max: leave -max out, or ask plan what one does")
	}
	if len(args) == 1 {
		return s.fromRedis(ctx, args[0])
	}
	records, done, err := openRecords(args[1:])
	defer done()
	if err != nil {
		return err
	}
	change, err := s.change(ctx, records)
	if err != nil {
		return err
	}
	p, err := records.Propose(ctx, args[0], change, s.compare)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		return usagef("%v", err)
	}
	all, outliers, found, last := p.All, p.Outliers, p.Found, p.Last
	change.Tell(last)
	if err := printEach(&s.printer, proposalHead, all, proposalRow); err != nil || s.json() {
		return err
	}
	if found.About {
		s.printf("note: The numbers are about so: how long calls would have run that were refused nobody knows.")
	}
	s.printf("%d calls of %d callers from %s to %s", found.Calls, found.Callers, last.From.Format(time.RFC3339), last.To.Format(time.RFC3339))
	outliers = slices.DeleteFunc(outliers, func(o *replay.Side) bool { return o.Now == 0 }) // it refuses others less than before
	for _, o := range outliers[:min(5, len(outliers))] {
		s.printf("%s needs more than the max for 1%% of the calls: it refuses %d of its %d", o.Caller, o.Now, o.Calls)
	}
	for _, note := range last.Notes {
		s.printf("note: %s", note)
	}
	return nil
}

func (s *session) fromRedis(ctx context.Context, name string) (err error) {
	for _, f := range s.named(replaces+"compare", "") {
		if name := f.Names()[0]; s.given(name) {
			return usagef("-%s is for records: name some, or leave it out", name)
		}
	}
	if s.Rules == nil {
		if s.Rules, err = s.listed(ctx); err != nil {
			return err
		}
	}
	d, err := s.Rule(name)
	if err != nil {
		return err
	}
	if a := d.Algorithm; !algorithm.RowOf(a).Is(algorithm.Slides) {
		return usagef("Redis does not know what callers of a %v have used in the last window: record them, see package raterecord", a)
	}
	if err := s.open(ctx, true); err != nil {
		return err
	}
	s.Max = rule.MaxLog // callers may have used more than the max that is declared
	used, refused, err := s.demands(ctx, d)
	if err != nil {
		return err
	}
	if len(used) == 0 {
		return s.NoKeys(ctx, d)
	}
	demands := make([]int64, 0, len(used))
	calls := int64(0)
	for key, n := range used {
		demands = append(demands, n+refused[key])
		calls += n + refused[key]
	}
	slices.Sort(demands)
	all, err := replay.EachShare(func(share float64, of string) (replay.Proposal, error) {
		return replay.LowestOf(demands, share, of, d.Rule)
	})
	if err != nil {
		return err
	}
	if err := printEach(&s.printer, proposalHead, all, proposalRow); err != nil || s.json() {
		return err
	}
	s.printf("%d calls of %d callers in the last %v", calls, len(demands), operate.ShortDuration(d.Window))
	s.printf("note: This is one window alone, by what Redis counts now. Callers who came earlier are not in it: record some days, and replay them.")
	if s.Shadows(d, runtime.NewKey()) {
		s.printf("note: The rule is in shadow mode: Redis does not count what is over its max.")
	}
	s.printf("note: A caller who is blocked, or held by a peer, is taken to have used the max.")
	s.printf("note: Refused callers may have come again: then the max is too high. Those are counted by the minute, of the 100 that were refused most.")
	return nil
}

// demands returns what each caller has used in the last window, and how often it was refused in that.
func (s *session) demands(ctx context.Context, d operate.Rule) (used, refused map[string]int64, err error) {
	used, refused = map[string]int64{}, map[string]int64{}
	err = s.Walk(ctx, []operate.Rule{d}, func(_ operate.Rule, k operate.State) {
		if k.State == operate.Blocked || k.State == operate.Held { // nobody can read more
			k.Used = d.Max
		}
		used[k.Key] += k.Used
	})
	if err != nil {
		return nil, nil, err
	}
	past, err := s.refusals(ctx, max(d.Window, time.Minute), 0)
	if err != nil {
		return nil, nil, err
	}
	hidden := map[string]string{}
	if len(s.Secret) > 0 {
		for pattern := range used {
			if key, err := rule.ParseKey(pattern); err == nil {
				hidden[s.Hidden(key.String())] = pattern
			}
		}
	}
	for _, r := range past.Callers {
		if r.Rule != d.Name {
			continue
		}
		key := r.Key
		if pattern, is := hidden[r.Text]; is {
			key = pattern
		}
		n := r.Refused
		if d.Window < time.Minute { // they are counted by the minute
			n = int64(float64(n) * float64(d.Window) / float64(time.Minute))
		}
		refused[key] += n
		used[key] += 0
	}
	return used, refused, nil
}
