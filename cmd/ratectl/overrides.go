package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime/override"
)

// An overrideEntry is an override in JSON.
type overrideEntry struct {
	Rule    string               `json:"rule"`    // * for all limits
	Pattern *string              `json:"pattern"` // null: it is for the rule
	Block   bool                 `json:"block,omitempty"`
	Allow   bool                 `json:"allow,omitempty"`
	Enabled *bool                `json:"enabled,omitempty"`
	Max     *int64               `json:"max,omitempty"`
	Window  string               `json:"window,omitempty"`
	Mode    string               `json:"mode,omitempty"`
	Until   *time.Time           `json:"until,omitempty"` // when all of it ends
	Ends    map[string]time.Time `json:"ends,omitempty"`  // of fields, if not all have the same
	Says    json.RawMessage      `json:"says"`            // as it stands in the hash
	change  override.Change
}

func entryOf(t override.Target, c override.Change) overrideEntry {
	entry := overrideEntry{Rule: t.Rule, Block: c.Block, Allow: c.Allow, Enabled: c.Enabled, Max: c.Max, Ends: c.Ends, Says: json.RawMessage(c.String()), change: c}
	if t.Keys {
		entry.Pattern = &t.Pattern
	}
	if c.Window != nil {
		entry.Window = c.Window.String()
	}
	if c.Mode != nil {
		entry.Mode = c.Mode.String()
	}
	if !c.Until.IsZero() {
		entry.Until = &c.Until
	}
	return entry
}

// describe returns what the override is for and what it says.
func (e overrideEntry) describe() string {
	of := "the rule"
	if e.Pattern != nil {
		of = printable(*e.Pattern)
	} else if e.Rule == override.All {
		of = "all limits"
	}
	return fmt.Sprintf("%v for %s", e.change, of)
}

func (e overrideEntry) row() []string {
	pattern, until := "-", "-"
	if e.Pattern != nil {
		pattern = printable(*e.Pattern)
	}
	if e.Until != nil {
		until = e.Until.UTC().Format(time.RFC3339)
		if !time.Now().Before(*e.Until) {
			until += " (over)"
		}
	}
	said := e.change
	if said.Then == (override.Values{}) {
		said.Until = time.Time{}
	}
	return []string{e.Rule, pattern, said.String(), until}
}

// describe names what an override is for.
func describe(t override.Target) string {
	switch {
	case t.Rule == override.All:
		return "all limits"
	case !t.Keys && strings.HasSuffix(t.Rule, "*"):
		return "rules " + printable(t.Rule)
	case t.Keys && t.Pattern != "":
		return fmt.Sprintf("%s of rule %s", printable(t.Pattern), printable(t.Rule))
	}
	return "rule " + printable(t.Rule)
}

// An overrideListCommand prints the overrides in the hash.
type overrideListCommand struct{ session }

func (c *overrideListCommand) about() about {
	return about{
		name: "override ls", short: "list the overrides", needs: prints | needRedis,
		long: "Lists the hash, with expired overrides, and in how many of the processes that report it is in force. If a limiter would reject the hash, the error says why.",
	}
}

func (c *overrideListCommand) run(ctx context.Context, _ []string) error {
	entries, err := c.entries(ctx)
	if err != nil {
		return err
	}
	shown := make([]overrideEntry, len(entries))
	for i, e := range entries {
		shown[i] = entryOf(e.Target, e.Change)
	}
	if err := printEach(&c.printer, "RULE KEYS OVERRIDE UNTIL", shown, overrideEntry.row); err != nil || c.json() {
		return err
	}
	f, err := c.following(ctx)
	switch {
	case err != nil:
		return err
	case f.Follow == 0:
		c.printf("%v", f)
	default:
		c.printf("%s", f.State())
	}
	return nil
}

// processes returns what the processes report to Redis.
func (s *session) processes(ctx context.Context) ([]bridge.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Processes(ctx)
}

// following asks Redis who follows the hash.
func (s *session) following(ctx context.Context) (operate.Following, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.Following(ctx, s.overrides)
}

// awaited waits, if that is wanted, until a change is in force in all processes that follow the hash and
// live.
func (c *editing) awaited(ctx context.Context) error {
	if c.wait <= 0 || c.dry {
		return nil
	}
	for over := time.After(c.wait); ; {
		f, err := c.following(ctx)
		if err != nil {
			return err
		}
		if f.InForce == f.Follow && f.Follow > 0 {
			c.printf("%s", f.State())
			return nil
		}
		select {
		case <-over:
			return foreign{fmt.Errorf("after %v it is %s: see ratectl processes", c.wait, f.State())}
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
