package report

import (
	"io"

	"github.com/rategen/rategen/bench/internal/contest"
	"github.com/rategen/rategen/bench/internal/limiters"
)

// Summary writes the few numbers that come first on the page.
func Summary(w io.Writer, result *contest.Result) {
	g := &grid{head: []string{"decisions per second, × " + limiters.Base}}
	cases := []contest.Case{alone, distinct, hot, full}
	for _, c := range cases {
		g.head = append(g.head, c.String())
	}
	for _, name := range []string{
		limiters.RategenZSET, limiters.RategenPacked, limiters.RategenBucket, limiters.RategenLease, limiters.Base, "throttled",
		"ulule/limiter", "sethvargo/go-redisstore", "plain ZSET script",
	} {
		cells := []string{name}
		for _, c := range cases {
			cells = append(cells, cell(contest.Find(result.Shared, c, name), contest.Find(result.Shared, c, limiters.Base)))
		}
		g.add(cells...)
	}
	g.write(w, Markdown)
}

func cell(row, base *contest.Row) string {
	if row == nil || base == nil || row.Fault != "" {
		return ""
	}
	rate := row.Value(contest.Rate)
	s := count(rate)
	if ratio := times(rate, base.Value(contest.Rate)); ratio != "" && row.Name != base.Name {
		s += " (" + ratio + ")"
	}
	return s
}
