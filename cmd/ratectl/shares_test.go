package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime"
)

// An operator sees who shares a key, changes the burst and the weight of a share, and takes that back.
func TestShares(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	const rules = `{"file":"a.go","line":1,"interface":"Model","key":["#provider"],"window":"1h0m0s","max":"40","algorithm":"token-bucket","burst":40,"headroom":20,"prefix":"rate_limit:cap:","name":"cap","mode":"enforce"}` + "\n"
	if err := os.WriteFile(b.env["RATECTL_RULES"], []byte(listing+rules), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &runtime.Rule{Name: "cap", Prefix: "rate_limit:cap:", Window: time.Hour, Max: 40, Burst: 40, Algorithm: runtime.TokenBucket, Headroom: 20}
	take := func(n int, tenant string) {
		t.Helper()
		for range n {
			limit := r.Limit(runtime.NewKey().AddString("openai")).WithShare(runtime.NewKey().AddString(tenant), 1)
			if _, err := b.limiter.Take(t.Context(), limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	take(3, "quiet")
	take(7, "loud")
	b.run("keys", "cap").wants(t, 0, `KEY +STATE +USED.*openai +ok +10/40.*share loud +- +7 by weight.*share quiet +- +3 by weight.*`, "")
	var line keyLine
	if err := json.Unmarshal([]byte(b.run("keys", "cap", "-o", "json").out), &line); err != nil || line.Key != "openai" || line.SharesTotal != 2 || len(line.Shares) != 2 || line.Shares[0].Name != "loud" {
		t.Errorf("in JSON: %+v, %v", line, err)
	}
	b.run("override", "set", "cap", "-burst", "60").wants(t, 0, `rule cap: the override is \{"burst":60\}; there was none.*`, "")
	b.run("override", "set", "cap", "-share", "lo*", "-weight", "4", "-for", "1h").wants(t, 0, `share lo\* of rule cap: the override is \{"until":".*","weight":4\}; there was none.*`, "")
	b.run("override", "ls").wants(t, 0, `.*cap +- +\{"burst":60\}.*cap +share lo\* +\{"weight":4\} +20.*`, "")
	b.run("rules").wants(t, 0, `.*cap +40 per 1h, 60 at once.*`, "")
	b.run("override", "ls", "-o", "json").wants(t, 0, `.*"pattern":"lo\*","shares":true,"weight":4,.*`, "")
	b.run("history").wants(t, 0, `.*share lo\* of rule cap.*`, "")
	b.run("override", "set", "cap", "-share", "lo*", "-weight", "5", "-n").wants(t, 0, `.*would be .*"weight":5.*it was .*"weight":4.*callers that are counted now: 1.*`, "")
	b.run("override", "rm", "cap", "-share", "lo*", "-yes").wants(t, 0, `share lo\* of rule cap: the override is gone; it was .*"weight":4.*`, "")
	b.run("undo").wants(t, 0, `.*"weight":4.*`, "")
	for line, want := range map[string]string{
		"-share a -weight 0":          `-weight "0": write a whole number from 1 to 1000000`,
		"-share a -weight -1":         `-weight "-1": write`,
		"-share a -weight 1000001":    `-weight "1000001": write`,
		"-share a -weight x":          `-weight "x": write`,
		"-weight 2":                   "-share and -weight go together",
		"-share a -max 2":             "-share and -weight go together",
		"-share a -keys b -weight 2":  "two targets",
		"-share= -weight 2":           "-share is empty",
		"-burst 0":                    `-burst "0": write a whole number from 1`,
		"-burst 9 -share a -weight 2": "a share has a weight alone",
	} {
		if a := b.run(append([]string{"override", "set", "cap"}, strings.Fields(line)...)...); a.code == 0 || !strings.Contains(a.err, want) {
			t.Errorf("%s: exit code %d, %q, want %q", line, a.code, a.err, want)
		}
	}
	b.run("override", "set", "model.tokens", "-share", "a", "-weight", "2").wants(t, 2, "", ".*rule model.tokens divides nothing, so it has no shares: leave -share out.*")
	b.run("override", "set", "login.user", "-burst", "9").wants(t, 2, "", ".*sliding-log, which has no burst: leave -burst out, and set -max.*")
	b.run("override", "set", "*", "-share", "a", "-weight", "2").wants(t, 1, "", ".*")
}
