package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rategen/rategen/runtime/rule"
)

// Run plays each scenario of some files, in each variant, in a bubble of testing/synctest. The world is what the
// scenarios call the place where they are played.
func Run(t *testing.T, files, world string, play func(t *testing.T, s *Scenario, world World, replace *strings.Replacer)) {
	for _, s := range Read(t, files) {
		t.Run(s.Name, func(t *testing.T) {
			for _, variant := range s.Variants() {
				names := World{world}
				for i := 0; i < len(variant); i += 2 {
					names = append(names, ValueName(variant[i], variant[i+1]))
				}
				synctest.Test(t, func(t *testing.T) { play(t, s, names, strings.NewReplacer(variant...)) })
			}
		})
	}
}

// Repeat does a step as often as it says, each time with its number in place of #, and returns the answers but for those that are
// as the one before. With an answer is how long it took on the clock of the bubble, unless the step is one of those that take time.
func Repeat(text, separator string, slow []string, do func(step string) string) string {
	text, times := Repeated(text)
	var answers []string
	for i := range times {
		begin, step := time.Now(), Expand(text)
		if times > 1 {
			step = strings.ReplaceAll(step, "#", strconv.Itoa(i))
		}
		answer := do(step)
		synctest.Wait()
		verb, _, _ := strings.Cut(step, " ")
		if took := time.Since(begin); took > 0 && !slices.Contains(slow, verb) {
			answer += fmt.Sprint(", after ", took)
		}
		answers = append(answers, answer)
	}
	return strings.Join(slices.Compact(answers), separator)
}

// Rule returns a rule of one call an hour, but for what words say: NAME FIELD=VALUE …
func Rule(t testing.TB, words []string) *rule.Rule {
	t.Helper()
	r := &rule.Rule{Name: words[0], Window: time.Hour, Max: 1}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if is, err := Set(r, name, value); err != nil || !is {
			t.Fatalf("rule %s: %v", word, err)
		}
	}
	return r
}
