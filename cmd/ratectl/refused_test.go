package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/spec"
	"github.com/rategen/rategen/internal/testkit/redistest"
)

// tellRefused tells refusals of a minute some minutes ago, as processes do. Lines are rule, key and
// count, separated by tabs.
func (b *bench) tellRefused(t *testing.T, now int64, ago int64, lines ...string) {
	t.Helper()
	minute := now/60 - ago
	text := fmt.Sprint(minute, "\n", strings.Join(lines, "\n"), "\n")
	if err := b.client.ZAdd(t.Context(), "orders:rate_limit:{processes}:refused", redis.Z{Score: float64(minute), Member: text}).Err(); err != nil {
		t.Fatal(err)
	}
}

// TestRefused looks back: who was refused, when, and what of it is not told.
func TestRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.Client(t), server.Addr)
	b.run("refused").wants(t, 3, "", `ratectl: no refusal is told since \S+Z in the namespace "orders"; of all callers 0 are; processes .*\n`)
	b.run("refused", "-since", "0s").wants(t, 2, "", `.*write a duration.*`)
	b.run("refused", "").wants(t, 2, "", `.*KEY is empty.*`)
	secret := []byte("pepper")
	now := b.client.Time(t.Context()).Val().Unix()
	at := func(ago int64) string { return time.Unix((now/60-ago)*60, 0).UTC().Format("2006-01-02T15:04Z") }
	for ago := int64(50); ago <= 58; ago++ {
		if ago != 53 { // which a process has missed by a second
			b.tellRefused(t, now, ago, "login.user\tacme\t10", "model.tokens\tacme:%3A%3A1\t1", "\t7")
		}
	}
	b.tellRefused(t, now, 20, "login.user\tacme\t3", "login%25\t"+spec.HiddenKey(secret, "eve")+"\t9")
	b.tellRefused(t, now, 300, "login.user\tgone\t5", "unknown\tgone\t6")
	long, last := at(58)+"/"+at(49), at(20)+"/"+at(19)
	span := func(text string) string { // without a day that is there twice
		from, to, _ := strings.Cut(text, "/")
		if from[:11] == to[:11] {
			to = to[11:]
		}
		return from + "/" + to
	}
	others := `ratectl: and 56 refusals since \S+Z of callers of whom nothing else is told: .*\n`
	b.run("refused").wants(t, 0, `RULE +KEY +REFUSED +WHEN\nlogin.user +acme +83 +`+span(long)+", "+span(last)+`\nlogin% +%hidden-\w{32} +9 +`+span(last)+`\nmodel.tokens +acme:%3A%3A1 +8 +`+span(long)+`\n\.+█████\.███\.+█\.+ a minute from \S+Z on, of up to 1[12]\n`, others)
	b.run("refused", "-since", "25m").wants(t, 0, `RULE.*\nlogin% +%hidden-\w{32} +9 .*\nlogin.user +acme +3 .*`, "")
	b.run("refused", "-since", "59m", "-until", "40m").wants(t, 0, `RULE.*\nlogin.user +acme +80 .*\nmodel.tokens +acme:%3A%3A1 +8 .*`, others)
	b.run("refused", "-since", "1h", "-until", "1h").wants(t, 2, "", ".*for -until a shorter one.*")
	b.run("refused", "-since", "48h", "gone").wants(t, 0, `RULE.*gone.*`, ".*processes keep refusals for 24h.*")
	b.run("refused", "-since", "24h", "gone").wants(t, 0, `RULE.*\nunknown +gone +6 .*\nlogin.user +gone +5 .*`, others)
	b.run("refused", "::1", "-limit", "1", "-o", "json").wants(t, 0, `\{"rule":"model.tokens","key":"acme:%3A%3A1","refused":8,"spans":\[\{"start":"\S+:00Z","end":"\S+:00Z","refused":8\}\]\}\n`, others)
	b.run("refused", "-limit", "1").wants(t, 0, `RULE.*\nlogin.user .*`, ".*these are the first 1 of 3 callers, see -limit\n")
	b.run("refused", "eve").wants(t, 3, "", `.*no refusal is told for a key with "eve" since .* of all callers 3 are; .*`)
	b.env["RATECTL_REFUSED_SECRET"] = "pepper"
	b.run("refused", "eve").wants(t, 0, `RULE.*\nlogin% +%hidden-\w{32} +9 .*`, others)

	b.tellRefused(t, now, 200, "!model.all\tann\t12", "model.all\tann\t2", "!login.user\tacme\t4")
	b.run("refused", "-since", "4h", "ann").wants(t, 0, `RULE.*\nmodel.all +ann +2 .*\nmodel.all +ann +12 in shadow .*\n\.*█\.+ an hour from \S+ on, of up to 14\n`, others)
	b.run("refused", "-since", "4h", "-o", "json", "ann").wants(t, 0, `.*"refused":12,"shadow":true,.*`, others)

	// A caller for whom nothing is counted any more is found by what was refused.
	b.take(t, 6, "login.user", 0, "acme")
	b.run("find", "acme").wants(t, 0, `RULE.*\nlogin.user +acme +blocked +5/5 .* 83, last `+span(last)+` +-\nmodel.tokens +acme:%3A%3A1 +ok +0/20 .* 8, last `+span(long)+` +-\n`, "")
	b.run("find", "gone", "-o", "json").wants(t, 0, `\{"rule":"login.user","key":"gone","state":"ok",.*"refused":\{"rule":"login.user","key":"gone","refused":5,"spans":\[.*\]\},"overrides":.*`, "")
	b.tellRefused(t, now, 19, "login.user\t"+spec.HiddenKey(secret, "acme")+"\t100")
	b.client.ZRemRangeByScore(t.Context(), "orders:rate_limit:{processes}:refused", "-inf", fmt.Sprint(now/60-20))
	b.run("find", "acme").wants(t, 0, `RULE.*\nlogin.user +acme +blocked +5/5 .* 100, last .*`, "")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("pepper\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.env["RATECTL_REFUSED_SECRET"] = "other"
	b.run("find", "acme").wants(t, 0, `RULE.*\nlogin.user +acme +blocked +5/5 +\S+ +\S+ +- +-\n`, "")
	b.run("find", "acme", "-refused-secret-file", file).wants(t, 0, `RULE.*\nlogin.user +acme +blocked +5/5 .* 100, last .*`, "")

	b.client.Set(t.Context(), "orders:rate_limit:{processes}:refused", "x", 0)
	b.run("refused").wants(t, 1, "", `ratectl: .*WRONGTYPE.*\n`)
	b.run("find", "acme").wants(t, 0, `RULE.*\nlogin.user +acme +blocked .*`, "ratectl: when callers were refused is not known: .*WRONGTYPE.*\n")
}
