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
	// Change overrides the max or the window of a rule, or both.
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
	// ChangeKey overrides the max of a key, or its window, or both.
	ChangeKey Kind = "override_key"
	// RestoreKey takes the whole override of a key back, also a Block or an Allow.
	RestoreKey Kind = "restore_key"
	// Undo undoes a change in the history of the overrides.
	Undo Kind = "undo"
)

// kinds are all of them.
var kinds = []Kind{Reset, Release, Change, Restore, Block, Unblock, Allow, Unallow, ChangeKey, RestoreKey, ShadowOn, ShadowOff, Undo}

// ofKey reports whether the action is for one key.
func (k Kind) ofKey() bool {
	return k == Reset || k == Release || k == Block || k == Unblock || k == Allow || k == Unallow || k == ChangeKey || k == RestoreKey
}

// changes reports whether the action has a max or a window.
func (k Kind) changes() bool { return k == Change || k == ChangeKey }

// ends reports whether what the action sets may have an end.
func (k Kind) ends() bool {
	return k.changes() || k == Block || k == Allow || k == ShadowOn || k == ShadowOff
}

// edits reports whether the action changes overrides.
func (k Kind) edits() bool { return k != Reset && k != Release }

// An Action is a change that a viewer asks for.
type Action struct {
	Kind Kind
	// Rule is the name of a rule that the page shows.
	Rule string
	// Key is the key of an action for one key: what [runtime.Key.String] returns.
	Key string
	// Max and Window are those of Change and ChangeKey. One that is nil stays as it is.
	Max    *int64
	Window *time.Duration
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

// offered returns the kinds of actions that a viewer is offered.
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
	for _, k := range kinds {
		if !k.edits() || a.editor != nil {
			names = append(names, string(k))
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
		return failure{http.StatusConflict, fmt.Sprintf("%v: %s", err, act.absent())}
	}
	return err
}

// edit returns what an action changes about the overrides.
func (act *Action) edit(key *runtime.Key) override.Edit {
	e := override.Edit{Target: override.Target{Rule: act.Rule}, For: act.For, Endless: act.Endless}
	if act.Kind.ofKey() {
		e.Pattern, e.Keys = key.Pattern(), true
	}
	switch act.Kind {
	case Change, ChangeKey:
		e.Set = rule.KeyOverride{Max: act.Max, Window: act.Window}
	case Block:
		e.Block = true
	case Unblock:
		e.Clear = []string{"block"}
	case Allow:
		e.Allow = true
	case Unallow:
		e.Clear = []string{"allow"}
	case ShadowOn:
		e.Set.Mode = new(runtime.ModeShadow)
	case ShadowOff:
		e.Set.Mode = new(runtime.ModeEnforce)
	case Restore, RestoreKey:
		e.Remove = true
	}
	return e
}
