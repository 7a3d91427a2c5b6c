package lua

import (
	"regexp"
	"strings"
	"testing"
)

// TestBlock wants every algorithm of events to read, write and remove a block in the scripts
// that are to know blocks, and no other script to be any longer for it.
func TestBlock(t *testing.T) {
	t.Parallel()
	comment := regexp.MustCompile(`(?m)--.*$`)
	for i, name := range Algorithms {
		if name == "permits" || name == "reserved" {
			continue // which a caller gives back, so none is blocked
		}
		for _, kind := range []uint{0, Several, Settle, One} {
			with := comment.ReplaceAllString(Take(Block|kind|1<<i), "")
			for k, piece := range []string{`ends(, \w+)? = `, `active = ends`, `local written = redis\.pcall\(`} { // reads, tells, writes
				if k == 2 && kind == Settle && name == "shares" {
					continue // whose blocks are members that a charge leaves alone
				}
				if !regexp.MustCompile(piece).MatchString(with) {
					t.Errorf("%s, set %d: %q is missing", name, Block|kind|1<<i, piece)
				}
			}
			without := comment.ReplaceAllString(Take(kind|1<<i), "")
			if found := regexp.MustCompile(`\b(block|blocked|ends|active|written)\b`).FindString(without); found != "" {
				t.Errorf("%s, set %d: %q, of limits with a block", name, kind|1<<i, found)
			}
			if strings.Contains(with+without, insert) {
				t.Errorf("%s: a piece was not inserted", name)
			}
		}
	}
}

// TestPast wants both ways of counting periods to read, keep and tell former ones in scripts
// that are to know them, and no other script to be any longer for it.
func TestPast(t *testing.T) {
	t.Parallel()
	comment := regexp.MustCompile(`(?m)--.*$`)
	for i, name := range Algorithms {
		for _, kind := range []uint{0, Several, Settle, One, Block, Several | Block} {
			with, without := comment.ReplaceAllString(Take(Past|kind|1<<i), ""), comment.ReplaceAllString(Take(kind|1<<i), "")
			for _, piece := range []string{"begun", "stop \\+ life|lives \\+ life", "former"} {
				is := regexp.MustCompile(piece).MatchString(with)
				if keeps := name == "calendar" || name == "reserved"; keeps && !is {
					t.Errorf("%s, set %d: %q is missing", name, Past|kind|1<<i, piece)
				}
			}
			if found := regexp.MustCompile(`\b(former|past)\b`).FindString(without); found != "" {
				t.Errorf("%s, set %d: %q, of former periods", name, kind|1<<i, found)
			}
			if strings.Contains(with, insert) {
				t.Errorf("%s: a piece was not inserted", name)
			}
		}
	}
}
