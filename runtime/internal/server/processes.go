package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/rategen/rategen/internal/bridge"
	"github.com/rategen/rategen/lua"
	"github.com/rategen/rategen/runtime/internal/callers"
	"github.com/rategen/rategen/runtime/internal/private"
	"github.com/rategen/rategen/runtime/rediswire"
)

// MaxRefused is how many callers Redis keeps of a minute.
const MaxRefused = 100

const (
	// processTurn is how long reports go into one of two hashes. Those who report more often
	// are in one of them at any time.
	processTurn = 2 * time.Minute
	processTime = time.Second
)

// processPrefix returns what the keys start with under which processes of a namespace report. No key of a
// rule has their hash tag, since a brace in a part of it is escaped.
func processPrefix(namespace string) string {
	if namespace != "" {
		namespace += ":"
	}
	return namespace + "rate_limit:{processes}:"
}

// A told is what a process tells of itself.
type told struct {
	text          string // what it has in force: "" if the process ends, and [lives] if there is nothing new
	calls         string // those since the last report, or "" if they are not told
	digest, rules string // of which processes share the rules
	refused       []callers.Caller
}

// lives is the text of a report that says only that a process lives.
const lives = "."

// write writes a report with its rules, or without. It reports whether these are missing, and by how much
// the clock of Redis is ahead of ours.
func (r *Reporter) write(ctx context.Context, t told, rules string) (ahead time.Duration, missing bool, err error) {
	prefix := processPrefix(r.Namespace)
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	args := []string{"eval", lua.Processes(), "6", prefix + "0", prefix + "1", prefix + "refused", prefix + "alive", prefix + "rules:" + t.digest, prefix + "calls",
		seconds(processTurn), r.name, t.text, seconds(r.kept()), strconv.Itoa(MaxRefused), rules, t.calls}
	most, others := callers.Most(t.refused, MaxRefused)
	for _, c := range most {
		caller := url.PathEscape(c.Rule) + "\t" + r.Hidden(c.Key)
		if c.Max == callers.Shadowed {
			caller = "!" + caller
		} else if c.Max >= 0 {
			caller += "\t" + strconv.FormatInt(c.Max, 10)
		}
		args = append(args, caller, strconv.FormatUint(c.Count, 10))
	}
	if others > 0 {
		args = append(args, "", strconv.FormatUint(others, 10))
	}
	command := []rediswire.Command{{Args: args, Key: rediswire.FirstKey}}
	began := time.Now()
	r.Client.Patient(processTime).Do(ctx, command)
	if reply, _ := command[0].Value.([]any); len(reply) == 3 {
		missing = reply[0] == int64(1)
		ahead = timeOf(reply[1:]).Sub(began.Add(time.Since(began) / 2))
	}
	return ahead, missing, private.Hide(command[0].Err)
}

// timeOf returns what TIME says.
func timeOf(reply any) time.Time {
	parts, _ := reply.([]any)
	var numbers [2]int64
	for i := range min(len(parts), len(numbers)) {
		text, _ := parts[i].(string)
		numbers[i] = parseNumber(text)
	}
	return time.Unix(numbers[0], numbers[1]*1000)
}

// Processes returns what the limiters of a namespace have told, sorted by name.
func Processes(ctx context.Context, client rediswire.Client, namespace string) ([]bridge.Process, error) {
	const failed = "read the reports of processes: %w"
	told, err := readReports(ctx, client, namespace)
	if err != nil {
		return nil, fmt.Errorf(failed, err)
	}
	newest, rules := map[string]bridge.Process{}, map[string][]bridge.ProcessRule{}
	for _, text := range told.texts {
		var p bridge.Process
		if json.Unmarshal([]byte(text), &p) == nil && p.At.After(newest[p.Name].At) {
			newest[p.Name], rules[p.Digest] = p, nil
		}
	}
	digests := slices.Sorted(maps.Keys(rules))
	texts, err := readRules(ctx, client, namespace, digests)
	if err != nil {
		return nil, fmt.Errorf(failed, err)
	}
	for i, text := range texts {
		var shared []bridge.ProcessRule
		if json.Unmarshal([]byte(text), &shared) == nil {
			rules[digests[i]] = shared
		}
	}
	all := slices.SortedFunc(maps.Values(newest), func(a, b bridge.Process) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		p := &all[i]
		p.Alive, p.Rules = told.alive[p.Name], slices.Clone(rules[p.Digest])
		_ = json.Unmarshal([]byte(told.calls[p.Name]), &p.Calls) // without any there are none
		p.Silent = told.now.Sub(p.Alive) > bridge.AliveFor
		for n := range p.Rules {
			p.Rules[n].Called = n/8 < len(p.Called) && p.Called[n/8]>>(n%8)&1 == 1
		}
	}
	return all, nil
}

// reports are what processes have told.
type reports struct {
	texts []string             // of one process perhaps two, of which one is older
	calls map[string]string    // of each
	alive map[string]time.Time // when each gave its last sign, by the clock of Redis
	now   time.Time            // by that clock
}

// scanned is how many reports are read at a time, so that Redis serves others meanwhile.
const scanned = "100"

// readReports returns the reports of the processes of a namespace.
func readReports(ctx context.Context, client rediswire.Client, namespace string) (all reports, err error) {
	prefix := processPrefix(namespace)
	ask := func(commands ...rediswire.Command) ([]rediswire.Command, error) {
		client.Do(ctx, commands)
		return commands, private.Hide(rediswire.First(commands))
	}
	first, err := ask(rediswire.Command{Args: []string{"zrange", prefix + "alive", "0", "-1", "withscores"}, Key: 1}, rediswire.Command{Args: []string{"time"}})
	if err != nil {
		return all, err
	}
	all.alive, all.now = map[string]time.Time{}, timeOf(first[1].Value)
	for name, second := range pairsOf(first[0].Value) {
		all.alive[name] = time.Unix(parseNumber(second), 0)
	}
	all.calls = map[string]string{}
	for _, key := range []string{prefix + "0", prefix + "1", prefix + "calls"} {
		for cursor, more := "0", true; more; more = cursor != "0" {
			part, err := ask(rediswire.Command{Args: []string{"hscan", key, cursor, "count", scanned}, Key: 1})
			if err != nil {
				return all, err
			}
			reply, _ := part[0].Value.([]any)
			if len(reply) != 2 {
				return all, private.New("the reply to HSCAN is none")
			}
			cursor, _ = reply[0].(string)
			for name, text := range pairsOf(reply[1]) {
				if key == prefix+"calls" {
					all.calls[name] = text
				} else {
					all.texts = append(all.texts, text)
				}
			}
		}
	}
	return all, nil
}

// pairsOf yields what a reply has in pairs, some of which clients nest.
func pairsOf(reply any) iter.Seq2[string, string] {
	values, _ := reply.([]any)
	return func(yield func(string, string) bool) {
		var flat []any
		for _, value := range values {
			if nested, is := value.([]any); is {
				flat = append(flat, nested...)
			} else {
				flat = append(flat, value)
			}
		}
		for i := 0; i+1 < len(flat); i += 2 {
			text := fmt.Sprint(flat[i+1])
			if score, is := flat[i+1].(float64); is {
				text = strconv.FormatFloat(score, 'f', -1, 64)
			}
			if name, is := flat[i].(string); is && !yield(name, text) {
				return
			}
		}
	}
}

// readRules returns the rules that digests stand for.
func readRules(ctx context.Context, client rediswire.Client, namespace string, digests []string) (texts []string, err error) {
	commands := make([]rediswire.Command, len(digests))
	for i, digest := range digests {
		commands[i] = rediswire.Command{Args: []string{"get", processPrefix(namespace) + "rules:" + digest}, Key: 1}
	}
	client.Do(ctx, commands)
	texts = make([]string, len(digests))
	for i, c := range commands {
		if c.Err != nil && !errors.Is(c.Err, rediswire.ErrNil) {
			return nil, private.Hide(c.Err)
		}
		texts[i], _ = c.Value.(string)
	}
	return texts, nil
}
