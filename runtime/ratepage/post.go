package ratepage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/observe"
	"github.com/rategen/rategen/runtime/rule"
)

const maxBody = 16 << 10

type actionRequest struct {
	Action   Kind     `json:"action"`
	Rule     string   `json:"rule"`
	Key      *string  `json:"key"`
	Max      *int64   `json:"max"`
	Burst    *int64   `json:"burst"`
	Weight   *int64   `json:"weight"`
	WindowMS *float64 `json:"window_ms"`
	ForMS    *float64 `json:"for_ms"`  // how long it is to hold
	Endless  bool     `json:"endless"` // an end that is there goes
	Change   *int64   `json:"change"`  // of undo
	Why      string   `json:"why"`
}

const maxWhy = 500

func (a *actions) serve(w http.ResponseWriter, r *http.Request) {
	if a == nil {
		writeError(w, http.StatusForbidden, "this page is read-only: the program allows actions by ratepage.WithActions")
		return
	}
	if err := a.page.crossSite.Check(r); err != nil {
		a.log(r, slog.LevelWarn, "action on rate limits refused", Action{}, "", err)
		writeError(w, http.StatusForbidden, fmt.Sprintf("%v, from %.200q: if that is the address of this page before a proxy, the program trusts it by ratepage.WithTrustedOrigins", err, r.Header.Get("Origin")))
		return
	}
	act, key, err := a.read(w, r)
	if err != nil {
		writeFailure(w, err)
		return
	}
	who, err := a.authorize(r, act)
	if err != nil {
		a.log(r, slog.LevelWarn, "action on rate limits refused", act, who, err)
		writeError(w, http.StatusForbidden, err.Error())
		return
	}
	if err := a.do(r.Context(), act, key, shorten(who, 100)); err != nil {
		level := slog.LevelError
		var known failure
		if act.Kind.edits() && !errors.As(err, &known) && runtime.ClassOf(err) == observe.ClassOther { // not that Redis is away
			err = failure{http.StatusConflict, err.Error()}
		}
		if errors.As(err, &known) { // the viewer has asked for what cannot be
			level = slog.LevelWarn
		}
		a.log(r, level, "action on rate limits failed", act, who, private.Hide(err))
		writeFailure(w, err)
		return
	}
	a.log(r, slog.LevelInfo, "action on rate limits", act, who, nil)
	if !act.Kind.edits() { // the editor has a history of those
		a.page.history.add(historyEntry{At: time.Now(), Rule: act.Rule, Note: act.note(), By: shorten(who, 100)})
	}
	writeJSON(w, http.StatusOK, encode(struct {
		Done string `json:"done"`
	}{act.note()}))
}

// read returns the action that a request asks for, with its key.
func (a *actions) read(w http.ResponseWriter, r *http.Request) (act Action, key *runtime.Key, err error) {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != "application/json" {
		return act, nil, failure{http.StatusUnsupportedMediaType, "the body of an action is application/json"}
	}
	var body actionRequest
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err == nil && !utf8.Valid(text) { // the decoder would put another character, and so another key
		err = errors.New("it is not UTF-8: write a byte above 0x7F of a key as %XX")
	}
	if err == nil {
		err = decoder.Decode(&body)
	}
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.New("something follows the JSON value")
		}
	}
	if err != nil {
		return act, nil, failure{http.StatusBadRequest, "the body of the action is wrong: " + err.Error()}
	}
	act = Action{Kind: body.Action, Rule: body.Rule, Max: body.Max, Burst: body.Burst, Weight: body.Weight, Endless: body.Endless, Why: body.Why}
	if err := a.fill(&act, &body); err != nil {
		return act, nil, err
	}
	if body.Key == nil {
		return act, nil, nil
	}
	act.Key = *body.Key
	if key, err = rule.ParseKey(act.Key); err != nil {
		return act, nil, failure{http.StatusBadRequest, err.Error()}
	}
	act.Key = key.String()
	return act, key, nil
}

// fill checks what the body asks for, and adds to the action what is no text.
func (a *actions) fill(act *Action, body *actionRequest) (err error) {
	names, found, of := a.names(), a.page.named(act.Rule), act.Kind.row()
	switch {
	case !slices.Contains(names, string(act.Kind)):
		return badRequest("unknown action %.80q: the page offers %s", act.Kind, strings.Join(names, ", "))
	case len(found) == 0:
		return unknownRule(act.Rule)
	case of.ofKey && body.Key == nil:
		return badRequest("%s needs a key; that of a rule without a key option is empty", act.Kind)
	case !of.ofKey && body.Key != nil:
		return badRequest("%s is for a whole rule, so it has no key", act.Kind)
	case !act.Kind.changes() && (body.Max != nil || body.Burst != nil || body.WindowMS != nil):
		return badRequest("%s has neither max, burst nor window_ms", act.Kind)
	case act.Kind.changes() && body.Max == nil && body.Burst == nil && body.WindowMS == nil:
		return badRequest("%s needs max, burst or window_ms", act.Kind)
	case (act.Kind == Weigh) != (body.Weight != nil):
		return badRequest("weigh alone has a weight, from 1 to %d", rule.MaxWeight)
	case !of.ends && (body.ForMS != nil || body.Endless):
		return badRequest("%s has neither for_ms nor endless", act.Kind)
	case body.ForMS != nil && body.Endless:
		return badRequest("for_ms and endless both say when it ends: leave one out")
	case (act.Kind == Undo) != (body.Change != nil):
		return badRequest("undo alone has a change, the number of one in the history")
	case len(body.Why) > maxWhy:
		return badRequest("why has %d bytes, the most is %d", len(body.Why), maxWhy)
	}
	if body.Change != nil {
		if act.Change = *body.Change; act.Change < 1 {
			return badRequest("change %d is not the number of one", act.Change)
		}
	}
	if body.WindowMS != nil {
		window, err := milli("window_ms", *body.WindowMS, rule.MinWindow)
		if err != nil {
			return err
		}
		act.Window = &window
	}
	if body.ForMS != nil {
		if act.For, err = milli("for_ms", *body.ForMS, time.Second); err != nil {
			return err
		}
	}
	if act.Kind == Release && slices.ContainsFunc(found, func(f namedRule) bool { return !f.Rule.Hold }) {
		return badRequest("rule %.80q holds back no calls, so there is nothing to release: reset ends a block of its own, unblock one by an override", act.Rule)
	}
	if act.Kind.changes() || act.Kind == Weigh {
		for _, f := range found {
			if err := a.fits(f.Rule, *act); err != nil {
				return badRequest("%v", err)
			}
		}
	}
	return nil
}

// milli returns so many milliseconds, which are at least a time and at most 366 days.
func milli(name string, ms float64, least time.Duration) (time.Duration, error) {
	// Checked before the conversion, which is undefined beyond an int64.
	if least, most := milliseconds(least), milliseconds(rule.MaxWindow); !(ms >= least && ms <= most) {
		return 0, badRequest("%s %v is not between %v and %v", name, ms, least, most)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

func (a *actions) fits(r *runtime.Rule, act Action) error {
	o := rule.Override{Max: act.Max, Burst: act.Burst, Window: act.Window}
	if act.Weight != nil {
		o.Shares = map[string]rule.KeyOverride{"": {Weight: act.Weight}}
	}
	return runtime.Overrides{Rules: map[string]rule.Override{r.Name: o}}.Check(r)
}

// note says in a few words what the action does.
func (a *Action) note() string {
	note := a.Kind.row().did
	if a.Kind == Undo {
		return fmt.Sprintf("change %d was undone", a.Change)
	}
	var says []string
	for _, n := range a.numbers() {
		text := n.Value.String()
		if n.Value.Kind() == slog.KindDuration {
			text = shortDuration(n.Value.Duration())
		}
		says = append(says, n.Key+" "+text)
	}
	if len(says) > 0 {
		note += ": " + strings.Join(says, ", ")
	}
	if a.For > 0 {
		note += ", for " + shortDuration(a.For)
	} else if a.Endless {
		note += ", without an expiry"
	}
	return note
}

func (a *Action) numbers() (all []slog.Attr) {
	for _, said := range []struct {
		name string
		n    *int64
	}{{"max", a.Max}, {"burst", a.Burst}, {"weight", a.Weight}} {
		if said.n != nil {
			all = append(all, slog.Int64(said.name, *said.n))
		}
	}
	if a.Window != nil {
		all = append(all, slog.Duration("window", *a.Window))
	}
	return all
}

// log writes who asked for what. The line has a hash of the key in place of the key:
// whoever resolves a complaint knows the key, and finds the line by its hash.
func (a *actions) log(r *http.Request, level slog.Level, msg string, act Action, who string, err error) {
	logger := a.page.logger
	if logger == nil {
		logger = slog.Default()
	}
	attrs := []slog.Attr{
		slog.String("who", who), slog.String("from", r.RemoteAddr),
		slog.String("action", string(act.Kind)), slog.String("rule", act.Rule),
	}
	if act.Kind.row().ofKey {
		sum := sha256.Sum256([]byte(act.Key))
		attrs = append(attrs, slog.String("key_sha256", hex.EncodeToString(sum[:8])))
	}
	attrs = append(attrs, act.numbers()...)
	if act.For > 0 {
		attrs = append(attrs, slog.Duration("for", act.For))
	}
	if act.Change > 0 {
		attrs = append(attrs, slog.Int64("change", act.Change))
	}
	if act.Why != "" {
		attrs = append(attrs, slog.String("why", act.Why))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	logger.LogAttrs(r.Context(), level, msg, attrs...)
}
