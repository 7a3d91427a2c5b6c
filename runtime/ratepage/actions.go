package ratepage

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// A Kind is what an [Action] does.
type Kind string

const (
	// Reset forgets all that was counted for a key, and its block: its next call
	// finds the limit whole.
	Reset Kind = "reset"
	// Release ends a hold of a key, which a peer's answer has begun, see
	// [runtime.Limiter.Hold]. It needs a rule with a Hold.
	Release Kind = "release"
	// Change overrides the max, the burst or the window of a rule, or several of them.
	Change Kind = "override"
	// Restore takes the override of a rule back. Those of its keys stay.
	Restore Kind = "restore"
	// Block refuses all calls of a key, whatever else is said of it. What its override
	// says besides holds again when the block is over.
	Block Kind = "block"
	// Unblock undoes a Block, and nothing else. A key that the rule itself blocks
	// needs a Reset.
	Unblock Kind = "unblock"
	// Allow removes the limit of a key, unless it is blocked.
	Allow Kind = "allow"
	// Unallow undoes an Allow, and nothing else.
	Unallow Kind = "unallow"
	// ShadowOn makes a rule count and refuse nobody.
	ShadowOn Kind = "shadow_on"
	// ShadowOff makes a rule refuse calls.
	ShadowOff Kind = "shadow_off"
	// ChangeKey is Change for a key.
	ChangeKey Kind = "override_key"
	// RestoreKey takes the whole override of a key back, also a Block or an Allow.
	RestoreKey Kind = "restore_key"
	// Weigh gives a share of a rule with a Headroom a weight.
	Weigh Kind = "weigh"
	// Unweigh undoes a Weigh.
	Unweigh Kind = "unweigh"
	// Undo undoes a change in the history of the overrides.
	Undo Kind = "undo"
)

// A kindRow is what an action of a kind does.
type kindRow struct {
	kind        Kind
	ofKey, ends bool          // it is for one key or share; what it sets may have an end
	ofShare     bool          // it is for a share
	edit        override.Edit // but for what the viewer says
	did         string        // in a few words
	absent      string        // what there was not, if it takes something back
}

var kindRows = []kindRow{
	{kind: Reset, ofKey: true, did: "a key was reset"},
	{kind: Release, ofKey: true, did: "the hold of a key was released"},
	{kind: Change, ends: true, did: "overridden"},
	{kind: Restore, edit: override.Edit{Remove: true}, did: "the override was removed", absent: "the rule has no override of its own"},
	{kind: Block, ofKey: true, ends: true, edit: override.Edit{Block: true}, did: "a key was blocked"},
	{kind: Unblock, ofKey: true, edit: override.Edit{Clear: []string{"block"}}, did: "the block of a key was removed", absent: "the key is not blocked by an override of its own; a block by the rule itself ends with a reset"},
	{kind: Allow, ofKey: true, ends: true, edit: override.Edit{Allow: true}, did: "the limit was removed from a key"},
	{kind: Unallow, ofKey: true, edit: override.Edit{Clear: []string{"allow"}}, did: "a key has its limit again", absent: "the limit was not removed from the key"},
	{kind: ChangeKey, ofKey: true, ends: true, did: "a key was overridden"},
	{kind: RestoreKey, ofKey: true, edit: override.Edit{Remove: true}, did: "the override of a key was removed", absent: "the key has no override of its own"},
	{kind: Weigh, ofKey: true, ofShare: true, ends: true, did: "a share was given a weight"},
	{kind: Unweigh, ofKey: true, ofShare: true, edit: override.Edit{Remove: true}, did: "the weight of a share was removed", absent: "the share has no weight by an override"},
	{kind: ShadowOn, ends: true, edit: override.Edit{Set: rule.KeyOverride{Mode: new(runtime.ModeShadow)}}, did: "shadow mode was switched on"},
	{kind: ShadowOff, ends: true, edit: override.Edit{Set: rule.KeyOverride{Mode: new(runtime.ModeEnforce)}}, did: "shadow mode was switched off"},
	{kind: Undo, did: "undone"},
}

// row returns what an action of the kind does. There is none of an unknown kind.
func (k Kind) row() (r kindRow) {
	if i := slices.IndexFunc(kindRows, func(r kindRow) bool { return r.kind == k }); i >= 0 {
		r = kindRows[i]
	}
	return r
}

func (k Kind) changes() bool { return k == Change || k == ChangeKey }

func (k Kind) edits() bool { return k != Reset && k != Release }

// An Action is a change that a viewer asks for.
type Action struct {
	Kind Kind
	// Rule is the name of a rule that the page shows.
	Rule string
	// Key is the key of an action for one key, or the name of the share of Weigh and Unweigh: what
	// [runtime.Key.String] returns.
	Key string
	// Max, Burst and Window are those of Change and ChangeKey. One that is nil stays as it is.
	Max, Burst *int64
	Window     *time.Duration
	// Weight is that of Weigh.
	Weight *int64
	// For is how long what the action sets is to hold. At 0 an expiry stays, and Endless
	// removes it.
	For     time.Duration
	Endless bool
	// Change is the number of the change that is to be undone.
	Change int64
	// Why is the reason that the viewer gives.
	Why string
}

// An Editor changes the overrides that the limiters follow, see
// [runtime.WithOverrides], and knows what they say. [override.Editor] is one.
type Editor interface {
	Edit(ctx context.Context, e override.Edit) (override.Edited, error)
	Undo(ctx context.Context, id int64, by override.Edit) (override.Record, error)
	List(ctx context.Context) ([]override.Entry, error)
	History(ctx context.Context, n int) ([]override.Record, error)
	Note(ctx context.Context, r override.Record) (id int64, err error)
}

// WithActions lets viewers change things. Each action is a POST that the browser
// says is not from another site, see [http.CrossOriginProtection]. Then authorize
// decides: who is what the log and the history of the page call the viewer, and an
// error refuses the action with 403 and the error's text. It is called from many
// goroutines, once for each action, with the rule and key known to be well formed. A
// nil authorize allows nothing.
//
// Overrides are written by editor, which notes resets and releases too, and does them not if
// it cannot. If it is nil, keys can be reset and released without a history, and nothing can
// be overridden. The limiters follow within the interval of their source.
func WithActions(authorize func(r *http.Request, a Action) (who string, err error), editor Editor) Option {
	return func(p *Page) {
		if authorize != nil {
			p.actions = &actions{p, authorize, editor}
		}
	}
}

// WithOffers says which actions a viewer is offered, of those that the page has: only these have
// buttons. The authorize of [WithActions] decides all the same. Offers is called from many goroutines,
// for each kind when a viewer opens the page, with the request for its stream. Without the option all
// viewers are offered all.
func WithOffers(offers func(r *http.Request, k Kind) bool) Option {
	return func(p *Page) { p.offers = offers }
}

func (p *Page) offered(r *http.Request) []string {
	return slices.DeleteFunc(p.actions.names(), func(name string) bool {
		return p.offers != nil && !p.offers(r, Kind(name))
	})
}

// actions are what a page lets viewers do.
type actions struct {
	page      *Page
	authorize func(*http.Request, Action) (string, error)
	editor    Editor // or nil
}

// names returns the kinds of actions that a page offers. A nil *actions offers
// none.
func (a *actions) names() []string {
	names := []string{}
	if a == nil {
		return names
	}
	for _, r := range kindRows {
		if !r.kind.edits() || a.editor != nil {
			names = append(names, string(r.kind))
		}
	}
	return names
}

// do carries an action out. The limits are those of the key on each rule of the
// name.
func (a *actions) do(ctx context.Context, act Action, key *runtime.Key, who string) error {
	defer a.page.overridesCache.forget()
	if !act.Kind.edits() {
		for _, found := range a.page.named(act.Rule) {
			by := override.Record{Who: who}
			found.core.Changes = a.editor
			if a.editor != nil {
				by.Why = act.Why
			}
			before, err := found.core.State(ctx, found.rule, key)
			if err == nil {
				err = found.core.Clear(ctx, string(act.Kind), found.rule, key, before, by)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	core := &operate.Core{Changes: a.editor}
	if act.Kind == Undo { // the viewer's right was decided about the rule
		_, err := core.Undo(ctx, act.Change, override.Edit{Who: who, Why: act.Why}, func(r override.Record) error {
			if r.Rule != act.Rule {
				return badRequest("change %d is not one of rule %.80q", act.Change, act.Rule)
			}
			return nil
		})
		return err
	}
	e := act.edit(key)
	e.Who, e.Why = who, act.Why
	_, err := core.Edit(ctx, e)
	if err == operate.ErrNothing {
		return failure{http.StatusConflict, fmt.Sprintf("%v: %s", err, act.Kind.row().absent)}
	}
	return err
}

func (act *Action) edit(key *runtime.Key) override.Edit {
	e := act.Kind.row().edit
	e.Rule, e.For, e.Endless = act.Rule, act.For, act.Endless
	if act.Kind.row().ofKey {
		e.Pattern, e.Shares = key.Pattern(), act.Kind.row().ofShare
		e.Keys = !e.Shares
	}
	if act.Kind.changes() || act.Kind == Weigh {
		e.Set = rule.KeyOverride{Max: act.Max, Burst: act.Burst, Window: act.Window, Weight: act.Weight}
	}
	return e
}
