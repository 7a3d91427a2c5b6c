package main

import (
	"bytes"
	"testing"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// stallAt returns the address of a Redis that says nothing any more to who sends it a word.
func stallAt(t *testing.T, addr, word string) string {
	t.Helper()
	return between(t, addr, func(sent []byte) []byte {
		if bytes.Contains(bytes.ToLower(sent), []byte(word)) {
			return nil
		}
		return sent
	}, unchanged)
}

// TestStalls has Redis fall silent in the middle of commands: what they print is said to be a part, or what is not known is
// said.
func TestStalls(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.take(t, 6, "login", 0, "user-1")
	const late = `redis at \S+ gave no answer within 2s, see -timeout: .*`
	for _, test := range []struct {
		word      string
		code      int
		out, errs string
		line      []string
	}{
		{"{processes}", 0, `RULE.*`, `ratectl: whether processes have rules in several forms is not known: ` + late, []string{"rules"}},
		{"{processes}", 0, `KEY.*user-1 +blocked.*`, `ratectl: whether processes have rules in several forms is not known: ` + late, []string{"keys", "login.user"}},
		{"{processes}:refused", 0, `RULE.*user-1 +blocked.*`, `ratectl: when callers were refused is not known: ` + late, []string{"find", "user-1"}},
		{"eval", 1, `RULE.*login.user +user-1 +unknown +- +- +- +.*`, `ratectl: ` + late, []string{"find", "user-1"}},
		{"usage", 1, `KEYS.*`, `ratectl: only a part of the keys was looked at: ` + late, []string{"memory"}},
		{"hset", 1, ``, `ratectl: redis at \S+ gave no answer within 2s, .*it may be written all the same, see the history: .*`, []string{"block", "login.user", "user-1"}},
		{"scan", 1, `CHECK.*writes +ok.*`, `ratectl: redis at \S+ gave no answer within 2s, see -timeout: list keys: .*`, []string{"doctor"}},
		{"scan", 1, `(\{.*\}\n)*\{"check":"keys","state":"unknown",.*`, `\{"error":"redis at .*","exit_code":1\}\n`, []string{"doctor", "-o", "json"}},
		{"{processes}", 1, `RULE.*`, `ratectl: ` + late, []string{"override", "ls"}},
	} {
		b.env["RATECTL_REDIS"] = stallAt(t, server.Addr, test.word)
		a := answer{}
		for range 5 { // a busy machine may be late with what does not stall
			if a = b.run(append(test.line, "-timeout", "2s")...); a.is(test.code, test.out, test.errs) {
				break
			}
		}
		a.wants(t, test.code, test.out, test.errs)
	}
}
