package document

import (
	"strings"
	"testing"
	"testing/synctest"
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
