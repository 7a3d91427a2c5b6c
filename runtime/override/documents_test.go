package override

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rule"
)

// TestDocuments plays the documents of files and hashes of overrides, and of their editor. A step is one of
//
//	put FIELD = VALUE            writes a field of the hash; drop FIELD removes it
//	edit FIELD = VALUE WORDS     makes an edit of what is in a field, after a trial of it, and tells what the hash
//	                             has then; words are until=TIME, endless and clear=NAME,NAME
//	remove FIELD                 removes it, after a trial
//	undo NUMBER WHO              takes a change back; history tells all
//	says                         is what a source reads in the hash
//	file NAME: TEXT              is what a file says
//	at TIME                      is what that is then, of what was read last
//	key VALUE                    is what a key has at 14:00:00, and one, two and three seconds later, that a file or a
//	                             hash says this of
//
// The rules are r, which is a log, and b, which is divided. ⏎ is the end of a line, ⇥ a tab, and ¿ a byte
// that is no UTF-8.
func TestDocuments(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t).Client(t)
	for _, s := range document.Read(t, "testdata/*.txt") {
		t.Run(s.Name, func(t *testing.T) {
			r := &runtime.Rule{Name: "r", Window: time.Minute, Max: 5}
			b := &runtime.Rule{Name: "b", Window: time.Minute, Max: 5, Algorithm: runtime.TokenBucket, Headroom: 2}
			p := &played{TB: t, client: client, key: s.Name, editor: NewEditor(client, s.Name, r, b)}
			for _, l := range s.Lines {
				if l.Step != "" {
					l.Answer(t, document.World{"redis"}, p.step(special.Replace(l.Step)))
				}
			}
		})
	}
}

var special = strings.NewReplacer("⏎", "\n", "⇥", "\t", "¿", "\xff")

// A played is a hash that a document is played with.
type played struct {
	testing.TB
	client *redis.Client
	key    string
	editor *Editor
	read   reading
}

func (p *played) step(text string) string {
	ctx := context.Background()
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "put":
		field, value, _ := strings.Cut(rest, " = ")
		limittest.OK(p, p.client.HSet(ctx, p.key, field, value).Err())
		return ""
	case "drop":
		limittest.OK(p, p.client.HDel(ctx, p.key, rest).Err())
		return ""
	case "edit":
		return p.edit(rest)
	case "remove":
		return p.change(Edit{Target: p.target(rest), Remove: true})
	case "undo":
		number, who, _ := strings.Cut(rest, " ")
		id, err := strconv.ParseInt(number, 10, 64)
		limittest.OK(p, err)
		done, err := p.editor.Undo(ctx, id, Edit{Who: who})
		if err != nil {
			return told(err)
		}
		return fmt.Sprint("undid ", done.ID, ": ", p.hash())
	case "history":
		records, err := p.editor.History(ctx, 100)
		limittest.OK(p, err)
		var all []string
		for _, r := range records {
			undoes := ""
			if r.Undoes != 0 {
				undoes = fmt.Sprint(", undoes ", r.Undoes)
			}
			all = append(all, fmt.Sprintf("%d %s %s: %s to %s%s", r.ID, r.Who, fieldOf(r.Target), cmp.Or(r.Before, "nothing"), cmp.Or(r.After, "nothing"), undoes))
		}
		return strings.Join(all, " | ")
	case "says":
		var err error
		p.read, err = parseHash(p.client.HGetAll(ctx, p.key).Val())
		if o, wrong := look(Redis(p.client, p.key)); err != nil || wrong != nil {
			p.equal("what is told of an error", o, runtime.Overrides{})
			return told(wrong)
		}
		return textIn(p.read.at(time.Time{}))
	case "file":
		var err error
		name, text, _ := strings.Cut(rest, ": ")
		if p.read, err = parseFile(name, []byte(text)); err != nil {
			p.equal("what is told of an error", p.read.overrides, runtime.Overrides{})
			return told(inFull(err))
		}
		return textIn(p.read.at(time.Time{}))
	case "at":
		before := p.read.overrides
		said := textIn(before)
		now := p.read.at(p.time(rest))
		p.equal("what a limiter may be reading", textIn(before), said)
		return textIn(now)
	case "key":
		return p.ofKey(rest)
	}
	p.Fatalf("no step is %q", text)
	return ""
}

// told returns the text of an error in one line.
func told(err error) string { return strings.ReplaceAll(inFull(err).Error(), "\n", "⏎") }

func (p *played) equal(what string, got, want any) {
	p.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		p.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (p *played) time(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	limittest.OK(p, err)
	return at
}

// target returns what a field is of, also where no hash may have it.
func (p *played) target(field string) Target {
	var names []string
	if strings.Contains(field, "\xff") {
		return ofKeys("r", "\xff") // JSON has no such byte
	} else if field == "nothing" {
		return Target{}
	} else if json.Unmarshal([]byte(field), &names) != nil {
		return Target{Rule: field}
	}
	switch len(names) {
	case 1:
		return Target{Rule: names[0]}
	case 2:
		return ofKeys(names[0], names[1])
	}
	return ofShares(names[0], names[2])
}

// hash returns what the hash has.
func (p *played) hash() string {
	fields := p.client.HGetAll(context.Background(), p.key).Val()
	var all []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, field+" "+fields[field])
	}
	return cmp.Or(strings.Join(all, " | "), "nothing")
}

func (p *played) edit(text string) string {
	field, rest, _ := strings.Cut(text, " = ")
	value, words := rest, ""
	if i := strings.LastIndexByte(rest, '}') + 1; i > 0 {
		value, words = rest[:i], rest[i:]
	}
	n, err := parseJSON([]byte(value))
	limittest.OK(p, err)
	change, _, err := changeOf(n, anyFields, nil)
	limittest.OK(p, err)
	e := Edit{Target: p.target(field), Set: change.KeyOverride, Block: change.Block, Allow: change.Allow}
	for word := range strings.FieldsSeq(words) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "until":
			e.Until = p.time(value)
		case "endless":
			e.Endless = true
		case "clear":
			e.Clear = strings.Split(value, ",")
		default:
			p.Fatalf("no word is %s", word)
		}
	}
	return p.change(e)
}

// anyFields are those of rules, keys and shares.
const anyFields = ruleFields + ", " + keyFields + ", " + shareFields

// change makes an edit, of which a trial says what it does and changes nothing.
func (p *played) change(e Edit) string {
	before, trial := p.hash(), e
	trial.Try = true
	tried, _ := p.editor.Edit(context.Background(), trial)
	p.equal("the hash after a trial", p.hash(), before)
	e.Who = "ada"
	done, err := p.editor.Edit(context.Background(), e)
	tried.ID = done.ID
	p.equal("the trial", tried, done)
	if e.Remove {
		again, err := p.editor.Edit(context.Background(), e)
		p.equal("found, found again", []any{done.Found, again.Found, err}, []any{true, false, error(nil)})
	}
	if err != nil {
		p.equal("the hash after an error", p.hash(), before)
		return told(err)
	}
	return p.hash()
}

// ofKey returns what a key has that a value is said of: in a hash, however its field is written, and in a file.
func (p *played) ofKey(value string) string {
	fromHash, err := parseHash(map[string]string{`["r","k"]`: value, `["s", "k"]`: value})
	if err != nil {
		return told(err)
	}
	fromFile, err := parseFile("a.yaml", []byte(`{"rules": {"r": {"keys": {"k": `+value+`}}, "s": {"keys": {"k": `+value+`}}}}`))
	limittest.OK(p, err)
	var all []string
	for i := range 4 {
		now := time.Date(2026, time.November, 22, 14, 0, i, 0, time.UTC)
		hash, file := fromHash.at(now), fromFile.at(now)
		own := hash.Rules["r"].Keys
		if len(own) == 0 {
			own = nil // a pattern that says nothing any more covers no other
		}
		for _, others := range []map[string]rule.KeyOverride{hash.Rules["s"].Keys, file.Rules["r"].Keys, file.Rules["s"].Keys} {
			p.equal(value, maps.Collect(maps.All(others)), maps.Collect(maps.All(own)))
		}
		all = append(all, cmp.Or(fields(own["k"]), "nothing"))
	}
	return strings.Join(all, " | ")
}

// fields returns the text of an override's fields.
func fields(o rule.KeyOverride) string {
	m := values(Values{KeyOverride: o})
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+"="+strings.Trim(string(m[name]), `"`))
	}
	return strings.Join(all, " ")
}

// textIn returns the text of overrides.
func textIn(o runtime.Overrides) string {
	var all []string
	if o.Enabled != nil {
		all = append(all, fmt.Sprint("enabled=", *o.Enabled))
	}
	add := func(name string, o rule.KeyOverride) { all = append(all, strings.TrimSpace(name+" "+fields(o))) }
	for _, name := range slices.Sorted(maps.Keys(o.Rules)) {
		of := o.Rules[name]
		add(name, ownOf(of))
		for _, pattern := range slices.Sorted(maps.Keys(of.Keys)) {
			add(name+"/"+pattern, of.Keys[pattern])
		}
		for _, pattern := range slices.Sorted(maps.Keys(of.Shares)) {
			add(name+" share "+pattern, of.Shares[pattern])
		}
	}
	return cmp.Or(strings.Join(all, " | "), "nothing")
}

// ownOf returns what an override says of the rule, and not of its keys or shares.
func ownOf(o rule.Override) rule.KeyOverride {
	return rule.KeyOverride{Enabled: o.Enabled, Max: o.Max, Burst: o.Burst, Window: o.Window, Mode: o.Mode}
}
