package ratepage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/rulelist"
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rawstore"
)

// TestDocuments plays requests to a page. The step
//
//	METHOD TARGET [FIELD]
//
// is one, with the headers and the body that it is given; that of an action is JSON unless a header says
// else. The answer is the status, the kind of what is no JSON, and the body or a field of it. A
// document begins with the others:
//
//	page OPTION...         of keys, plain, hosts=NAMES, trusted=ORIGINS, readonly; actions are all that are
//	                       asked for, and guarded ones those with a header Authorization; offers are for a
//	                       header Role, and noeditor has no editor
//	rules                  registers rules as rategen list -json has them; away is for a store that is away
//	overrides              has the limiter follow a file
//	take N RULE KEY        makes calls; hold RULE KEY holds them back for an hour
//	editor ERROR           has the editor fail; nothing has it find nothing, and well is over with that
//	edits, log, history    tell what the editor was asked for, the log has and the page remembers since the last such step
func TestDocuments(t *testing.T) {
	document.Transcripts(t, "testdata/*.txt", func(t *testing.T, _ string) func(step, input string) string {
		p := &played{T: t, rules: map[string]*runtime.Rule{}, store: runtime.NewMemoryStore()}
		return func(step, input string) string {
			return document.Masked(p.step(strings.Fields(step), strings.ReplaceAll(input, "¿", "\xff")), masks)
		}
	})
}

var masks = []document.Mask{
	document.Hide(`"?20[2-9]\d-\d\d-\d\dT[^\s"]*"?`, "TIME"),
	document.Hide(`((retry_after|reset_after|for)_ms":)[1-9]\d*`, "${1}N"),
}

// A played is a page that a document is played with.
type played struct {
	*testing.T
	page    *Page
	rules   map[string]*runtime.Rule
	store   runtime.Store
	options []runtime.Option
	limiter *runtime.Limiter
	editor  notebook
	log     bytes.Buffer
	seen    int // entries of the history
}

func (p *played) step(words []string, input string) string {
	switch words[0] {
	case "page":
		p.page = New(append(p.pageOptions(words[1:]), WithLogger(slog.New(slog.NewTextHandler(&p.log, nil))))...)
	case "away":
		p.store = rawstore.New(downStore{}, nil)
	case "overrides":
		path := filepath.Join(p.TempDir(), "limits.json")
		limittest.OK(p, os.WriteFile(path, []byte(input), 0o600))
		p.options = append(p.options, runtime.WithOverrides(override.File(path), time.Hour))
	case "rules":
		p.limiter = runtime.New(p.store, append(p.options, runtime.WithLogger(quiet), runtime.WithObserver(p.page.Observer()))...)
		p.Cleanup(func() { _ = p.limiter.Close() })
		for line := range strings.Lines(input) {
			var l rulelist.Rule
			limittest.OK(p, json.Unmarshal([]byte(line), &l))
			r, err := l.Rule()
			limittest.OK(p, err)
			p.rules[r.Name] = r
			p.limiter.Register(r)
		}
	case "take":
		n, err := strconv.Atoi(words[1])
		limittest.OK(p, err)
		said := ""
		for range n {
			_, err := p.limiter.Take(context.Background(), p.rules[words[2]].Limit(runtime.NewKey().AddString(words[3])))
			said += map[bool]string{true: "admitted\n", false: "refused\n"}[err == nil]
		}
		return said
	case "hold":
		limittest.OK(p, p.limiter.Hold(p.Context(), p.rules[words[1]].Limit(runtime.NewKey().AddString(words[2])), time.Hour))
	case "editor":
		p.editor.err = errors.New(strings.Join(words[1:], " "))
	case "nothing", "well":
		p.editor.err, p.editor.nothing = nil, words[0] == "nothing"
	case "edits":
		defer func() { p.editor.edits = nil }()
		return strings.Join(p.editor.edits, "\n")
	case "log":
		defer p.log.Reset()
		return regexp.MustCompile(`(?m)^time=\S+ `).ReplaceAllString(p.log.String(), "")
	case "history":
		said, all := "", p.page.history.view()
		for _, e := range slices.Backward(all[:len(all)-p.seen]) {
			said += fmt.Sprintln(e.Rule, e.Note, "by", e.By)
		}
		p.seen = len(all)
		return said
	default:
		return p.ask(words, input)
	}
	return ""
}

func (p *played) pageOptions(words []string) (options []Option) {
	allow := func(*http.Request, Action) (string, error) { return "ada", nil }
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "keys":
			options = append(options, WithKeys())
		case "plain":
			options = append(options, WithPlainKeys())
		case "hosts":
			options = append(options, WithHosts(strings.Split(value, ",")...))
		case "trusted":
			options = append(options, WithTrustedOrigins(strings.Split(value, ",")...))
		case "readonly":
			options = append(options, WithActions(nil, &p.editor))
		case "actions":
			options = append(options, WithActions(allow, &p.editor))
		case "noeditor":
			options = append(options, WithActions(allow, nil))
		case "guarded":
			options = append(options, WithActions(func(r *http.Request, _ Action) (string, error) {
				if r.Header.Get("Authorization") == "" {
					return "", errors.New("log in first")
				}
				return "ada", nil
			}, &p.editor))
		case "offers":
			options = append(options, WithOffers(func(r *http.Request, k Kind) bool { return k == Reset || r.Header.Get("Role") == "operator" }))
		default:
			p.Fatalf("no option is %s", word)
		}
	}
	return options
}

var header = regexp.MustCompile(`^([A-Z][\w-]+): (.*)\n$`)

// ask sends a request, and tells the answer.
func (p *played) ask(words []string, input string) string {
	body, headers := "", [][]string{}
	for line := range strings.Lines(input) {
		if h := header.FindStringSubmatch(line); h != nil {
			headers = append(headers, h)
		} else {
			body += line
		}
	}
	target := regexp.MustCompile(`REPEAT\((\w+),(\d+)\)`) // for what is long
	repeated := func(text string) string {
		return target.ReplaceAllStringFunc(text, func(of string) string {
			m := target.FindStringSubmatch(of)
			n, _ := strconv.Atoi(m[2])
			return strings.Repeat(m[1], n)
		})
	}
	r := httptest.NewRequest("GET", repeated(words[1]), strings.NewReader(repeated(strings.TrimSuffix(body, "\n"))))
	r.Method = words[0]
	if words[0] == "POST" {
		r.Header.Set("Content-Type", asJSON)
	}
	for _, h := range headers {
		r.Header.Set(h[1], h[2])
		if h[1] == "Host" {
			r.Host = h[2]
		}
	}
	w := httptest.NewRecorder()
	p.page.ServeHTTP(w, r)
	said := fmt.Sprint(w.Code, " ")
	if allow := w.Header().Get("Allow"); allow != "" {
		said += "Allow: " + allow + " "
	}
	if kind := w.Header().Get("Content-Type"); !strings.HasPrefix(kind, asJSON) {
		return said + kind
	}
	if len(words) > 2 {
		var fields map[string]json.RawMessage
		limittest.OK(p, json.Unmarshal(w.Body.Bytes(), &fields))
		return said + string(fields[words[2]])
	}
	return said + w.Body.String()
}
