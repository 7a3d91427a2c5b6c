package ratepage

import (
	"context"
	"net/http"
	"time"

	"github.com/rategen/rategen/runtime"
)

// A Kind is what an [Action] does.
type Kind string

const (
	// Reset forgets all that was counted for a key, and its block: its next call
	// finds the limit whole.
	Reset Kind = "reset"
	// Change overrides the max or the window of a rule, or both.
	Change Kind = "override"
	// Restore takes the override of a rule back. Those of its keys stay.
	Restore Kind = "restore"
	// Block gives a key a max of 0, and refuses its calls in shadow mode too.
	Block Kind = "block"
	// Unblock takes the override of a key back: what holds for the rule then holds
	// for the key. A key that the rule itself blocks needs a Reset.
	Unblock Kind = "unblock"
	// ShadowOn makes a rule count and deny nobody.
	ShadowOn Kind = "shadow_on"
	// ShadowOff makes a rule deny calls.
	ShadowOff Kind = "shadow_off"
)

// ofKey reports whether the action is for one key.
func (k Kind) ofKey() bool { return k == Reset || k == Block || k == Unblock }

// edits reports whether the action changes overrides.
func (k Kind) edits() bool { return k != Reset }

// An Action is a change that a viewer asks for.
type Action struct {
	Kind Kind
	// Rule is the name of a rule that the page shows.
	Rule string
	// Key is the key of Reset, Block and Unblock: what [runtime.Key.String] returns.
	Key string
	// Max and Window are those of Change. One that is nil stays as it is.
	Max    *int64
	Window *time.Duration
}

// An Editor changes the overrides that the limiters follow, see
// [runtime.WithOverrides]. Package runtime/override has one for a hash in Redis.
type Editor interface {
	// Edit changes what the overrides say of a rule or, if pattern is not nil, of
	// the keys of that pattern: the fields of change that are not nil replace those
	// that there are. A nil change takes that override away, if there is one.
	Edit(ctx context.Context, rule string, pattern *string, change *runtime.KeyOverride) error
}

// WithActions lets viewers change things. Each action is a POST that the browser
// says is not from another site, see [http.CrossOriginProtection]. Then authorize
// decides: who is what the log and the history of the page call the viewer, and an
// error refuses the action with 403 and the error's text. It is called from many
// goroutines, once for each action, with the rule and key known to be well formed. A
// nil authorize allows nothing.
//
// Overrides are written by editor. If it is nil, keys can be reset and nothing can
// be overridden. The limiters follow within the interval of their source.
func WithActions(authorize func(r *http.Request, a Action) (who string, err error), editor Editor) Option {
	return func(p *Page) {
		if authorize != nil {
			p.actions = &actions{p, authorize, editor, http.NewCrossOriginProtection()}
		}
	}
}

// actions are what a page lets viewers do.
type actions struct {
	page      *Page
	authorize func(*http.Request, Action) (string, error)
	editor    Editor // or nil
	crossSite *http.CrossOriginProtection
}

// names returns the kinds of actions that a page offers. A nil *actions offers
// none.
func (a *actions) names() []string {
	names := []string{}
	if a == nil {
		return names
	}
	for _, k := range []Kind{Reset, Change, Restore, Block, Unblock, ShadowOn, ShadowOff} {
		if !k.edits() || a.editor != nil {
			names = append(names, string(k))
		}
	}
	return names
}

// do carries an action out. The limits are those of the key on each rule of the
// name.
func (a *actions) do(ctx context.Context, act Action, key *runtime.Key) error {
	edit := func(change *runtime.KeyOverride) error {
		var pattern *string
		if act.Kind.ofKey() {
			pattern = new(key.Pattern())
		}
		return a.editor.Edit(ctx, act.Rule, pattern, change)
	}
	switch act.Kind {
	case Reset:
		for _, found := range a.page.named(act.Rule) {
			if err := found.limiter.Reset(ctx, found.Rule.Limit(key)); err != nil {
				return err
			}
		}
		return nil
	case Change:
		return edit(&runtime.KeyOverride{Max: act.Max, Window: act.Window})
	case Block:
		return edit(&runtime.KeyOverride{Enabled: new(true), Max: new(int64(0)), Mode: new(runtime.Enforce)})
	case ShadowOn:
		return edit(&runtime.KeyOverride{Mode: new(runtime.Shadow)})
	case ShadowOff:
		return edit(&runtime.KeyOverride{Mode: new(runtime.Enforce)})
	default: // Restore, Unblock
		return edit(nil)
	}
}
