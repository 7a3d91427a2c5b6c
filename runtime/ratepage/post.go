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
)

// maxBody is how long the body of an action may be in bytes.
const maxBody = 16 << 10

// An actionRequest is the body of an action.
type actionRequest struct {
	Action   Kind     `json:"action"`
	Rule     string   `json:"rule"`
	Key      *string  `json:"key"`
	Max      *int64   `json:"max"`
	WindowMS *float64 `json:"window_ms"`
}

// serve answers a POST that asks for an action.
func (a *actions) serve(w http.ResponseWriter, r *http.Request) {
	if a == nil {
		writeError(w, http.StatusForbidden, "this page is read-only: the program allows actions by ratepage.WithActions")
		return
	}
	if err := a.crossSite.Check(r); err != nil {
		writeError(w, http.StatusForbidden, err.Error())
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
	if err := a.do(r.Context(), act, key); err != nil {
		a.log(r, slog.LevelError, "action on rate limits failed", act, who, private.Hide(err))
		if act.Kind.edits() && runtime.ClassOf(err) == runtime.ClassOther { // not that Redis is away
			err = failure{http.StatusConflict, err.Error()}
		}
		writeFailure(w, err)
		return
	}
	a.log(r, slog.LevelInfo, "action on rate limits", act, who, nil)
	a.page.history.add(historyEntry{At: time.Now(), Rule: act.Rule, Note: act.note(), By: shorten(who, 100)})
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
	switch {
	case err != nil:
	case !utf8.Valid(text): // the decoder would put another character, and so another key
		err = errors.New("it is not UTF-8: write a byte above 0x7F of a key as %XX")
	default:
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
	act = Action{Kind: body.Action, Rule: body.Rule, Max: body.Max}
	bad := func(format string, args ...any) (Action, *runtime.Key, error) {
		return act, nil, failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
	}
	names := a.names()
	switch found := a.page.named(act.Rule); {
	case !slices.Contains(names, string(act.Kind)):
		return bad("unknown action %.80q: the page offers %s", act.Kind, strings.Join(names, ", "))
	case len(found) == 0:
		return act, nil, unknownRule(act.Rule)
	case act.Kind.ofKey() != (body.Key != nil):
		if body.Key == nil {
			return bad("%s needs a key; that of a rule without a key option is empty", act.Kind)
		}
		return bad("%s is for a whole rule, so it has no key", act.Kind)
	case act.Kind != Change && (body.Max != nil || body.WindowMS != nil):
		return bad("%s has neither max nor window_ms", act.Kind)
	case act.Kind == Change:
		if body.Max == nil && body.WindowMS == nil {
			return bad("%s needs max or window_ms", act.Kind)
		}
		if body.WindowMS != nil {
			// Checked before the conversion, which is undefined beyond an int64.
			least, most := milliseconds(runtime.MinWindow), milliseconds(runtime.MaxWindow)
			if ms := *body.WindowMS; !(ms >= least && ms <= most) {
				return bad("window_ms %v is not between %v and %v", ms, least, most)
			}
			act.Window = new(time.Duration(*body.WindowMS * float64(time.Millisecond)))
		}
		for _, f := range found {
			if err := a.fits(f.Rule, act); err != nil {
				return bad("%v", err)
			}
		}
	}
	if body.Key == nil {
		return act, nil, nil
	}
	act.Key = *body.Key
	if key, err = runtime.ParseKey(act.Key); err != nil {
		return bad("%v", err)
	}
	act.Key = key.String()
	return act, key, nil
}

// fits returns why a rule cannot have the numbers of an action.
func (a *actions) fits(r *runtime.Rule, act Action) error {
	o := runtime.Override{Max: act.Max, Window: act.Window}
	return runtime.Overrides{Rules: map[string]runtime.Override{r.Name: o}}.Check(r)
}

// note says in a few words what the action does.
func (a *Action) note() string {
	switch a.Kind {
	case Reset:
		return "a key was reset"
	case Block:
		return "a key was blocked"
	case Unblock:
		return "the override of a key was removed"
	case Restore:
		return "the override was removed"
	case ShadowOn:
		return "shadow mode was switched on"
	case ShadowOff:
		return "shadow mode was switched off"
	}
	var says []string
	if a.Max != nil {
		says = append(says, fmt.Sprintf("max %d", *a.Max))
	}
	if a.Window != nil {
		says = append(says, "window "+shortDuration(*a.Window))
	}
	return "overridden: " + strings.Join(says, ", ")
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
	if act.Kind.ofKey() {
		sum := sha256.Sum256([]byte(act.Key))
		attrs = append(attrs, slog.String("key_sha256", hex.EncodeToString(sum[:8])))
	}
	if act.Max != nil {
		attrs = append(attrs, slog.Int64("max", *act.Max))
	}
	if act.Window != nil {
		attrs = append(attrs, slog.Duration("window", *act.Window))
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	logger.LogAttrs(r.Context(), level, msg, attrs...)
}
