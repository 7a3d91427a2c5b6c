package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/document"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// TestDocuments plays what operators do, each document with a Redis of its own. The step
//
//	[NAME=VALUE] ratectl ARGUMENTS [> FILE]
//
// runs the command. Its answer is what is printed, to standard error behind !, and the exit code if
// that is not 0. What the step is given is standard input, and the answers of an operator on a
// terminal after the step asked. Times are TIME, and durations are rounded up. @ is a directory, ¿ a byte
// that is no UTF-8, ␛ an escape, and ⏎ the end of a line.
// The others are
//
//	until TEXT ratectl ARGUMENTS    runs it again until it prints a text, and tells the lines with that
//	take N RULE [max=N] [share=NAME] PART...  makes calls
//	redis COMMAND...                is one that Redis is given
//	env NAME=VALUE...               is what commands find in the environment
//	asked ANSWER                    has a terminal, on which somebody answers; without ANSWER there is none
//	file FILE [MODE], append FILE   write what the step is given; rules.jsonl are the rules
//	doctor                          tells the checks of ratectl doctor that are not ok, and the names of the others
//	changes                         are the keys that are not as they were at the last such step
//	follows USER...                 tells who is admitted to login.user by a program that follows the overrides
//	record                          records traffic of one rule
//	last-year                       has acme's counts of the rules plan and model be those of the last year
//	unsaved                         has Redis fail to save a snapshot
//	report NAME HASH TERMS          reports a process that follows a hash and has login.user with these terms
//	told MINUTES                    tells what was refused so long ago, in lines RULE KEY COUNT; HIDDEN(KEY) is hidden
//	stall WORD                      has Redis say nothing any more to who sends a word; ahead DURATION has a clock ahead
//	mask EXPRESSION => TEXT         has a text stand for what differs from run to run
func TestDocuments(t *testing.T) {
	document.Transcripts(t, "testdata/*.txt", func(t *testing.T, _ string) func(step, input string) string {
		server := redistest.Start(t)
		return play(t, newBench(t, server.Client(t), server.Addr), server.Addr)
	})
}

// A played is a document that is played.
type played struct {
	*testing.T
	*bench
	addr  string
	keys  map[string]string // as they were at the last step that tells changes
	masks []document.Mask
	told  int64 // the minute from which on what was refused is told
}

// masks are those of every document, beside durations.
var masks = []document.Mask{
	document.Hide(`20[2-9]\d-\d\d-\d\dT\d\d:\d\d(:[\d.]+)?(Z|[+-]\d\d:\d\d)`, "TIME"),
	document.Hide(`\d+ bytes`, "N bytes"),
	document.Hide(`"bytes":\d+`, `"bytes":N`),
	document.Hide(`gone in \S+`, "gone in DURATION"),
	document.Hide(`_ms":[1-9]\d*`, `_ms":N`),
	document.Hide(`(?m)^(\d+ +)\d+( +\d+ +\d+ )`, "${1}BYTES$2"),                                              // of memory
	document.Hide(`\b(NOPERM|WRONGPASS|NOAUTH|READONLY|WRONGTYPE|OOM|MISCONF|NOREPLICAS) [^:"\n]*`, "$1 ..."), // as a server says it
	document.Hide(`  +`, "  "),
}

var durations = regexp.MustCompile(`\b(\d+h)?(\d+m)?(\d+(\.\d+)?s)?\b`)

// rounded rounds a duration up that is no whole number of minutes or a few seconds.
func rounded(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil || d%time.Minute == 0 || d%time.Second == 0 && d < 10*time.Second {
		return text
	}
	return spec.DurationText((d + time.Minute - 1).Truncate(time.Minute))
}

var (
	years   = regexp.MustCompile(`\d{4}-01-01T00:00:00\+01:00`)
	minutes = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\dZ|/\d\d:\d\dZ`)
)

// relative has years of Berlin, and minutes once something is told, be written as what is between them and now.
func (p *played) relative(said string) string {
	said = years.ReplaceAllStringFunc(said, func(text string) string {
		year, _ := strconv.Atoi(text[:4])
		return fmt.Sprintf("YEAR%+d", year-time.Now().Year())
	})
	if p.told == 0 {
		return said
	}
	day := "" // which a minute behind / has in common with the one before
	return minutes.ReplaceAllStringFunc(said, func(text string) string {
		slash := ""
		if text[0] == '/' {
			slash, text = "/", day+text[1:]
		}
		at, err := time.Parse("2006-01-02T15:04Z", text)
		limittest.OK(p, err)
		day = text[:len("2006-01-02T")]
		return fmt.Sprintf("%s%+dm", slash, at.Unix()/60-p.told/60)
	})
}

// play returns what answers the steps of a document.
func play(t *testing.T, b *bench, addr string) func(step, input string) string {
	p := &played{T: t, bench: b, addr: addr, keys: b.dump(t), masks: slices.Clone(masks)}
	return func(step, input string) string {
		if expression, is := strings.CutPrefix(step, "mask "); is {
			expression, text, _ := strings.Cut(expression, " => ")
			p.masks = append(p.masks, document.Hide("(?m)"+expression, text))
			return ""
		}
		line := csv.NewReader(strings.NewReader(strings.NewReplacer("@/", b.dir+"/", "¿", "\xff", "␛", "\x1b", "⏎", "\n").Replace(step)))
		line.Comma, line.LazyQuotes = ' ', true
		words, err := line.Read()
		limittest.OK(t, err)
		said := p.step(words[0], words[1:], strings.ReplaceAll(input, `"REDIS"`, strconv.Quote(addr)))
		said = p.relative(strings.NewReplacer(b.dir, "@", p.addr, "REDIS").Replace(said))
		return durations.ReplaceAllStringFunc(document.Masked(said, p.masks), rounded)
	}
}

func (p *played) step(verb string, words []string, input string) string {
	ctx := p.Context()
	if name, value, is := strings.Cut(verb, "="); is {
		defer func(was string) { p.env[name] = was }(p.env[name])
		p.env[name] = value
		return p.step(words[0], words[1:], input)
	}
	switch verb {
	case "ratectl":
		p.in = cmp.Or(input, p.in)
		defer func(in string) { p.in = in }(p.in)
		return p.command(words)
	case "until":
		said := ""
		limittest.Eventually(p, words[0], func() bool { said = p.command(words[2:]); return strings.Contains(said, words[0]) })
		return strings.Join(slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool { return !strings.Contains(line, words[0]) }), "\n")
	case "take":
		n, err := strconv.Atoi(words[0])
		limittest.OK(p, err)
		p.call(p.T, n, p.limit(words[1], words[2:]))
	case "redis":
		args := make([]any, len(words))
		for i, word := range words {
			args[i] = word
		}
		said, err := p.client.Do(ctx, args...).Result()
		if err != nil {
			return err.Error()
		}
		return strings.TrimPrefix(fmt.Sprint(said), "OK")
	case "env":
		for _, word := range words {
			name, value, _ := strings.Cut(word, "=")
			p.env[name] = value
		}
	case "asked":
		p.terminal, p.in = len(words) > 0, strings.Join(words, " ")+"\n"
	case "file":
		mode, err := strconv.ParseUint(append(words, "600")[1], 8, 32)
		limittest.OK(p, err)
		limittest.OK(p, os.WriteFile(filepath.Join(p.dir, words[0]), []byte(input), os.FileMode(mode)))
		p.readRules(p.T)
	case "append":
		text, err := os.ReadFile(filepath.Join(p.dir, words[0]))
		limittest.OK(p, err)
		return p.step("file", words, string(text)+input)
	case "doctor":
		return p.doctor(words)
	case "changes":
		return p.changes()
	case "follows":
		return p.follows(p.T, words)
	case "last-year":
		p.lastYear(p.T)
	case "record":
		some.recordIn(p, filepath.Join(p.dir, "record"))
	case "unsaved": // a directory stands where the snapshot is to be
		is := p.client.ConfigGet(ctx, "d*").Val()
		limittest.OK(p, cmp.Or(os.MkdirAll(filepath.Join(is["dir"], is["dbfilename"], "x"), 0o755), p.client.ConfigSet(ctx, "save", "1 1").Err(), p.client.BgSave(ctx).Err()))
		limittest.Eventually(p, "it refuses writes", func() bool { return p.client.Set(ctx, "x", 1, 0).Err() != nil })
	case "report":
		p.report(p.T, words[0], words[1], words[2])
	case "told":
		ago, err := strconv.ParseInt(words[0], 10, 64)
		limittest.OK(p, err)
		input = regexp.MustCompile(`HIDDEN\((\w+)\)`).ReplaceAllStringFunc(input, func(key string) string {
			return spec.HiddenKey([]byte("pepper"), key[len("HIDDEN("):len(key)-1])
		})
		p.told = cmp.Or(p.told, p.client.Time(ctx).Val().Unix())
		p.tellRefused(p.T, p.told, ago, strings.ReplaceAll(strings.TrimSuffix(input, "\n"), " ", "\t"))
	case "stall":
		p.env["RATECTL_REDIS"] = stallAt(p.T, p.addr, words[0])
		p.masks = append(p.masks, document.Hide(regexp.QuoteMeta(p.env["RATECTL_REDIS"]), "REDIS"))
	case "ahead":
		by, err := time.ParseDuration(words[0])
		limittest.OK(p, err)
		p.env["RATECTL_REDIS"] = ahead(p.T, p.addr, by)
	default:
		p.Fatalf("no step is %q", verb)
	}
	return ""
}

// command runs the command, and returns what it prints.
func (p *played) command(words []string) string {
	to := ""
	if n := len(words); n > 2 && words[n-2] == ">" {
		words, to = words[:n-2], words[n-1]
	}
	a := p.run(words...)
	said := a.out
	if to != "" {
		said = ""
		limittest.OK(p, os.WriteFile(to, []byte(a.out), 0o600))
	}
	for line := range strings.Lines(a.err) {
		said += "! " + line
	}
	if a.code != 0 {
		said += fmt.Sprintln("exit", a.code)
	}
	return said
}

// limit returns that of a call, with what words say beside the parts of its key.
func (p *played) limit(rule string, words []string) runtime.Limit {
	key, most, share := runtime.NewKey(), int64(0), ""
	for _, word := range words {
		if text, is := strings.CutPrefix(word, "max="); is {
			n, err := strconv.ParseInt(text, 10, 64)
			limittest.OK(p, err)
			most = n
		} else if text, is := strings.CutPrefix(word, "share="); is {
			share = text
		} else {
			key.AddString(word)
		}
	}
	limit := p.rules[rule].Limit(key)
	if most > 0 {
		limit = limit.WithMax(most)
	}
	if share != "" {
		limit = limit.WithShare(runtime.NewKey().AddString(share), 1)
	}
	return limit
}

func (p *played) doctor(flags []string) (said string) {
	sound := []string{"ok:"}
	a := p.run(append(flags, "doctor", "-o", "json")...)
	for line := range strings.Lines(a.out) {
		var c operate.Check
		limittest.OK(p, json.Unmarshal([]byte(line), &c))
		if c.Check == "latency" || c.Check == "version" {
			continue // they are the machine's
		}
		if c.State != "ok" {
			said += fmt.Sprintf("%s %s: %s; %s\n", c.Check, c.State, c.Says, c.Remedy)
		} else if !slices.Contains(sound, c.Check) {
			sound = append(sound, c.Check)
		}
	}
	return said + strings.Join(sound, " ") + fmt.Sprintln("\nexit", a.code)
}

func (p *played) changes() string {
	was, is := p.keys, p.dump(p.T)
	p.keys = is
	var all []string
	for key := range is {
		if was[key] != is[key] {
			all = append(all, key)
		}
	}
	for key := range was {
		if is[key] == "" {
			all = append(all, key+" is gone")
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
