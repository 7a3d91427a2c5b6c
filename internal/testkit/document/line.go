package document

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// An arrow stands before an answer. A line with an indent has the answer of some worlds.
const arrow, indent = " -> ", "  "

// and stands between names of which a world has all.
const and = " & "

// A World is what a scenario is played with: names such as those of an algorithm and a store, and
// of groups of these. The names of no two worlds are the same.
type World []string

func (w World) String() string { return strings.Join(w, and) }

// is reports whether a world has all of some names.
func (w World) is(names string) bool {
	for name := range strings.SplitSeq(names, and) {
		if !slices.Contains(w, name) {
			return false
		}
	}
	return true
}

// parts returns all of the names, and each choice of them.
func (w World) parts() (all []string) {
	for _, name := range w {
		for _, part := range all {
			all = append(all, part+and+name)
		}
		all = append(all, name)
	}
	return all
}

// A Line is one of a scenario.
type Line struct {
	Step  string // empty: it is a remark
	text  string // as it is in the file
	pos   string
	told  []told // the last that holds is the answer
	mu    sync.Mutex
	given map[string]given // by the worlds' names
}

// A told is the answer of some worlds, or of all.
type told struct {
	names  []string
	answer string
}

type given struct {
	world  World
	answer string
}

// read reads a line.
func read(text, pos string) *Line {
	l := &Line{text: text, pos: pos, given: map[string]given{}}
	if strings.HasPrefix(text, "#") {
		return l
	}
	step, answer, _ := strings.Cut(text, arrow)
	l.Step, l.told = step, []told{{answer: answer}}
	return l
}

// Answer takes the answer of a step in a world, which must be the expected one.
func (l *Line) Answer(t testing.TB, w World, answer string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given[w.String()] = given{w, answer}
	if *update {
		return
	}
	if want := l.expected(w); answer != want {
		t.Errorf("%s: %s: %s\n got %s\nwant %s", l.pos, w, l.Step, answer, want)
	}
}

func (l *Line) expected(w World) (answer string) {
	for _, r := range l.told {
		if len(r.names) == 0 || slices.ContainsFunc(r.names, w.is) {
			answer = r.answer
		}
	}
	return answer
}

// render returns the line with the answers that were given.
func (l *Line) render() string {
	if l.Step == "" || len(l.given) == 0 {
		return l.text
	}
	groups := map[string]map[string]World{} // by answer and name
	for name, g := range l.given {
		if groups[g.answer] == nil {
			groups[g.answer] = map[string]World{}
		}
		groups[g.answer][name] = g.world
	}
	answers := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		if n := len(groups[b]) - len(groups[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	text := l.Step
	if answers[0] != "" {
		text += arrow + answers[0]
	}
	for _, answer := range answers[1:] {
		text += "\n" + indent + strings.Join(l.names(groups[answer]), ", ") + ": " + answer
	}
	return text
}

// names returns few names that stand for some worlds and for no other.
func (l *Line) names(worlds map[string]World) (names []string) {
	others := map[string]bool{} // what other worlds are
	for _, g := range l.given {
		if _, is := worlds[g.world.String()]; !is {
			for _, part := range g.world.parts() {
				others[part] = true
			}
		}
	}
	for rest := maps.Clone(worlds); len(rest) > 0; {
		count, best := map[string]int{}, ""
		for _, w := range rest {
			for _, part := range w.parts() {
				count[part]++
			}
		}
		for part, n := range count {
			if better := cmp.Or(count[best]-n, strings.Count(part, and)-strings.Count(best, and), strings.Compare(part, best)); !others[part] && (best == "" || better < 0) {
				best = part
			}
		}
		names = append(names, best)
		maps.DeleteFunc(rest, func(_ string, w World) bool { return w.is(best) })
	}
	slices.Sort(names)
	return names
}
