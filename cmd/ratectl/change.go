package main

import (
	"bufio"
	"cmp"
	"fmt"

	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/printed"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// editsKey returns how a command changes the override of one key.
func editsKey(e override.Edit) func(*session, context.Context, []string) error {
	return func(s *session, ctx context.Context, args []string) (err error) {
		e := e
		if e.Target, err = s.keyTarget(args); err != nil {
			return err
		}
		return s.edit(ctx, e, 0)
	}
}

func (s *session) keyTarget(args []string) (override.Target, error) {
	d, key, err := s.keyNamed(args)
	if err != nil {
		return override.Target{}, err
	}
	return override.Target{Rule: d.Name, Pattern: key.Pattern(), Keys: true}, nil
}

func (s *session) shadow(ctx context.Context, args []string) error {
	mode, is := map[string]runtime.Mode{"on": runtime.ModeShadow, "off": runtime.ModeEnforce}[args[0]]
	if !is {
		return usagef("shadow %q: write on or off", args[0])
	}
	d, err := s.Rule(args[1])
	if err != nil {
		return err
	}
	target := override.Target{Rule: d.Name}
	if len(args) > 2 {
		if target, err = s.keyTarget(args[1:]); err != nil {
			return err
		}
	}
	return s.edit(ctx, override.Edit{Target: target, Set: rule.KeyOverride{Mode: &mode}}, 0)
}

// target returns the rule, or its keys or shares, that an argument and flags name.
func (s *session) target(rule string) (override.Target, error) {
	t := override.Target{Rule: rule, Pattern: s.pattern, Keys: s.given("keys"), Shares: s.given("share")}
	if t.Keys && t.Shares {
		return t, usagef("-keys and -share name two targets: make two changes")
	}
	if t.Shares {
		t.Pattern = s.share
	}
	if t.Shares && t.Pattern == "" {
		return t, usagef("-share is empty: a variable that is not set? Leave it out for the rule itself")
	}
	return t, nil
}

func (s *session) setOverride(ctx context.Context, args []string) error {
	target, err := s.target(args[0])
	e := override.Edit{Target: target}
	if err == nil {
		err = s.setFields(&e)
	}
	if err != nil {
		return err
	}
	share := 0.0
	if s.given("scale") {
		if share, err = fraction(s.scale); err != nil || !(share > 0 && share <= 1000) {
			return usagef("-scale %q: write a share of the present max above 0, such as 50%%; -max 0 admits nobody", s.scale)
		}
	}
	return s.edit(ctx, e, share)
}

func (s *session) setFields(e *override.Edit) error {
	if s.given("max") {
		n, err := strconv.ParseInt(s.max, 10, 64)
		if err != nil || n < 0 {
			return usagef("-max %q: write a whole number, 0 to admit nobody", s.max)
		}
		e.Set.Max = &n
	}
	for _, f := range []struct {
		name, text string
		most       int64
		set        **int64
	}{{"burst", s.burst, rule.MaxCount, &e.Set.Burst}, {"weight", s.weight, rule.MaxWeight, &e.Set.Weight}} {
		n, err := strconv.ParseInt(f.text, 10, 64)
		if !s.given(f.name) {
			continue
		}
		if err != nil || n < 1 || n > f.most {
			return usagef("-%s %q: write a whole number from 1 to %d", f.name, f.text, f.most)
		}
		*f.set = &n
	}
	if e.Shares != (e.Set.Weight != nil) {
		return usagef("-share and -weight go together: name the share, and its weight")
	}
	if s.given("window") {
		e.Set.Window = &s.window
	}
	if s.given("mode") {
		mode, is := map[string]runtime.Mode{"enforce": runtime.ModeEnforce, "soft": runtime.ModeSoft, "shadow": runtime.ModeShadow}[s.mode]
		if !is {
			return usagef("-mode %q: write enforce, soft or shadow", s.mode)
		}
		e.Set.Mode = &mode
	}
	if s.given("enabled") {
		on, err := strconv.ParseBool(s.enabled)
		if err != nil {
			return usagef("-enabled %q: write true or false", s.enabled)
		}
		e.Set.Enabled = &on
	}
	if s.given("scale") && s.given("max") {
		return usagef("-scale and -max both say the max: leave one out")
	}
	if !s.given("scale") && e.Set == (rule.KeyOverride{}) {
		return usagef("what is to change? Say -max, -scale, -burst, -window, -mode or -enabled, or -weight of a -share")
	}
	return nil
}

// removeOverride takes an override or some of its fields away, also that of a rule which has gone.
func (s *session) removeOverride(ctx context.Context, args []string) error {
	target, err := s.target(args[0])
	if err != nil {
		return err
	}
	e := override.Edit{Target: target, Remove: true}
	if s.given("only") {
		e.Remove, e.Clear = false, strings.Split(s.only, ",")
	}
	return s.edit(ctx, e, 0)
}

func overrideRow(o operate.Override) []string {
	pattern, until := "-", "-"
	if o.Keys {
		pattern = printed.Text(o.Pattern)
	} else if o.Shares {
		pattern = "share " + printed.Text(o.Pattern)
	}
	if !o.Until.IsZero() {
		until = o.Until.UTC().Format(time.RFC3339)
		if !time.Now().Before(o.Until) {
			until += " (over)"
		}
	}
	said := o.Change
	if said.Then == (override.Values{}) {
		said.Until = time.Time{}
	}
	return []string{o.Rule, pattern, said.String(), until}
}

func (s *session) listOverrides(ctx context.Context, _ []string) error {
	entries, err := s.Overrides(ctx)
	if err != nil {
		return err
	}
	if err := printEach(&s.printer, "RULE KEYS OVERRIDE UNTIL", entries, overrideRow); err != nil || s.json() {
		return err
	}
	f, err := s.Following(ctx)
	if err != nil {
		return err
	}
	if f.Follow == 0 {
		s.printf("%v", f)
	} else {
		s.printf("%s", f.State())
	}
	return nil
}

// confirm asks whether to do something, unless that is settled by -yes. An interrupt counts as no.
func (s *session) confirm(ctx context.Context, question string, args ...any) error {
	if s.yes {
		return nil
	}
	question = visible(fmt.Sprintf(question, args...))
	if !s.asks {
		return failure{unconfirmed, "nothing is changed: there is no terminal to ask on; say -yes to " + question}
	}
	fmt.Fprintf(s.err, "%s? [y/N] ", strings.ToUpper(question[:1])+question[1:])
	lines, answers := bufio.NewReader(s.in), make(chan string, 1)
	go func() { // an interrupt does not end the read: it lasts as long as the program
		answer, _ := lines.ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		if (answer == "y" || answer == "yes") && ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(s.err)
	}
	return failure{unconfirmed, "nothing is changed"}
}

func (s *session) author() string {
	who := cmp.Or(s.getenv("RATECTL_WHO"), s.getenv("USER"))
	if who == "" && s.Hash != "" {
		s.logger().Print("the history does not say who this is: set RATECTL_WHO")
	}
	return who
}
