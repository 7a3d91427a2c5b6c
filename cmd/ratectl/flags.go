package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
)

// Said is what the flags of commands say, beside those that name what is reached.
type said struct {
	yes, dry, parts, overwrite, skip, compare           bool
	why, ends, max, scale, mode, enabled, only, pattern string
	wait, lasts, window, expiry, since, until, every    time.Duration
	burst, weight, share                                string
	states, secretFile, changed, html, newlyRefused     string
	limit, count                                        int
	by, postgres                                        string
	renames                                             []string
	asked                                               operate.Past // about the history
}

func newSession(p *program) *session {
	s := &session{printer: printer{program: p, format: "table"}}
	s.redis, s.Timeout, s.Near = "localhost:6379", 5*time.Second, operate.NearShare
	s.limit, s.since, s.every = 100, time.Hour, 2*time.Second
	return s
}

// An option is a flag: its name, behind a word and a colon if other commands have another of that name, what it sets, and
// what it is for, with the name of its value in quotes.
type option struct {
	name string
	sets any
	help string
}

func (s *session) options() []option {
	return []option{
		{"yes", &s.yes, "do not ask for confirmation"},
		{"n", &s.dry, "change nothing: print what would be changed"},
		{"m", &s.why, "`reason` of the change, for the history; who makes it is in RATECTL_WHO or USER"},
		{"wait", &s.wait, "how `long` to wait until it is in force in all processes that follow the hash"},
		{"for", &s.lasts, "for how `long`; then the previous permanent value holds"},
		{"until", &s.ends, "`time` of expiry, as 2026-11-22T15:00:00Z, or never for none"},
		{"set:max", &s.max, "admit `n` in a window; 0 admits nobody"},
		{"burst", &s.burst, "admit `n` at once, of a bucket"},
		{"weight", &s.weight, "the `weight` of a share beside others, from 1 to 1,000,000"},
		{"scale", &s.scale, "admit a `share` of the present max, such as 50% or 200%"},
		{"window", &s.window, "the time that the max refers to"},
		{"mode", &s.mode, "enforce, soft or shadow"},
		{"enabled", &s.enabled, "`bool`, of which false removes the limit and true restores it"},
		{"keys", &s.pattern, "for the keys of a `pattern`, such as premium-* or one key, in place of the rule"},
		{"share", &s.share, "for the shares of a `pattern`, such as premium-* or one share, of a rule that is divided"},
		{"only", &s.only, "remove only these `fields`, separated by commas: max, burst, window, mode, enabled, block, allow"},

		{"limit", &s.limit, "show the first `n` lines at most"},
		{"parts", &s.parts, "the arguments after RULE are the parts of the key, without escapes"},
		{"near", &s.Near, "`share` of the limit from which a key is near"},
		{"max", &s.Max, "use this `number` as the max, for rules whose calls bring their own"},
		{"state", &s.states, "only keys in these `states`, separated by commas: near, refused, held (since a peer has asked for it), blocked, broken (by another program), ok, off"},
		{"since", &s.since, "how `long` to look back"},
		{"refused:until", &s.until, "how `long` ago to end"},
		{"history:since", &s.asked.Since, "how `long` to look back"},
		{"who", &s.asked.Who, "only changes by this `name`, or by those that start so and end with *"},
		{"rule", &s.asked.Rule, "only changes of this `rule`, or of those that start so and end with *"},
		{"key", &s.asked.Key, "only changes of keys with this `text`"},
		{"refused-secret-file", &s.secretFile, "`file` with the secret of runtime.WithRefusals, in place of RATECTL_REFUSED_SECRET"},

		{"every", &s.every, "time between two tables"},
		{"count", &s.count, "end after `n` tables (default: 1 if standard output is no terminal, and otherwise never)"},
		{"by", &s.by, "sort by `calls`: the keys that Redis is asked about most, in place of the rules"},
		{"page", &s.page, "show the rates of the live page at this `URL` (RATECTL_PAGE)"},

		{"changed", &s.changed, "`file` of overrides that is to be in force"},
		{"plan:max", nil, "`RULE=N`: another max"},
		{"plan:window", nil, "`RULE=D`: another window"},
		{"plan:burst", nil, "`RULE=N`: another burst"},
		{"algorithm", nil, "`RULE=NAME`: another algorithm"},
		{"plan:mode", nil, "`RULE=MODE`: enforce, shadow or soft"},
		{"compare", &s.compare, "propose for each algorithm"},
		{"html", &s.html, "write a page with charts to this `file`"},
		{"max-newly-refused", &s.newlyRefused, "fail if more than this `share` of the calls, such as 0.1%, is newly refused"},

		{"overwrite", &s.overwrite, "replace counts that are there, though they may be newer"},
		{"skip", &s.skip, "leave out the lines that do not fit, and name them"},
		{"rename", &s.renames, "`OLD=NEW`: what the file says of one rule is of another"},
		{"expiry", &s.expiry, "keep keys for this long (default: as long as the rule's keys may need)"},
		{"postgres", &s.postgres, "`URL` of the database, without a password, which is in PGPASSWORD (RATECTL_POSTGRES)"},

		{"rules", &s.rules, "`file` that rategen list -json has printed, - for standard input, or the address of a live page (RATECTL_RULES)"},
		{"o", &s.format, "`format` of the answer: table or json"},
		{"wide", &s.wide, "let tables be wider than the terminal, or than COLUMNS says"},
		{"context", &s.config.named, "`name` of a context, which says what to reach: see ratectl contexts"},
		{"redis", &s.redis, "`address` of Redis: host:port, several separated by commas, or a redis:// or rediss:// URL without a password (RATECTL_REDIS)"},
		{"cluster", &s.dial.IsClusterMode, "the addresses are nodes of a cluster; found out by itself if Redis says so"},
		{"sentinel", &s.dial.MasterName, "the addresses are Sentinels, which know the master by this `name`"},
		{"db", &s.dial.DB, "`number` of the database"},
		{"user", &s.dial.Username, "ACL user `name` (RATECTL_USER); its password is in RATECTL_PASSWORD"},
		{"password-file", &s.passwordFile, "`file` with the password, in place of RATECTL_PASSWORD"},
		{"sentinel-user", &s.dial.SentinelUsername, "ACL user `name` of the Sentinels; its password is in RATECTL_SENTINEL_PASSWORD"},
		{"sentinel-password-file", &s.sentinelPasswordFile, "`file` with the password of the Sentinels"},
		{"tls", &s.tls, "connect with TLS"},
		{"tls-ca", &s.ca, "PEM `file` with the authority that signed the certificate of Redis, and of a live page; means -tls"},
		{"tls-cert", &s.cert, "PEM `file` with a certificate to show; means -tls"},
		{"tls-key", &s.tlsKey, "PEM `file` with the key of -tls-cert"},
		{"tls-name", &s.tlsName, "`name` that the certificate of Redis must have"},
		{"timeout", &s.Timeout, "how long to wait for each answer"},
		{"namespace", &s.Namespace, "`name` given to runtime.WithNamespace (RATECTL_NAMESPACE)"},
		{"overrides", &s.Hash, "`key` of the hash that override.Redis reads (RATECTL_OVERRIDES)"},
	}
}

// shared names the flags of every command with such needs.
func shared(needs need) (names string) {
	if needs&(needRules|mayRules) != 0 {
		names += " rules"
	}
	if needs&prints != 0 {
		names += " o wide"
	}
	if needs&(needRedis|mayRedis) != 0 {
		names += " context redis cluster sentinel db user password-file sentinel-user sentinel-password-file" +
			" tls tls-ca tls-cert tls-key tls-name timeout namespace overrides"
	}
	return names
}

func (s *session) flagsOf(c command) []cli.Flag {
	return append(s.named(c.flags, ""), s.named(shared(c.needs), "Flags of every command")...)
}

// named returns flags by their rows, in a category of the help.
func (s *session) named(rows, category string) (all []cli.Flag) {
	options := s.options()
	for _, row := range strings.Fields(rows) {
		i := slices.IndexFunc(options, func(o option) bool { return o.name == row })
		all = append(all, s.flag(options[i], category))
	}
	return all
}

// flag returns a flag as the library has it. What a context may say for it, it has from there or from the environment
// if the command line has it not.
func (s *session) flag(o option, category string) cli.Flag {
	var sources cli.ValueSourceChain
	name := o.name[strings.Index(o.name, ":")+1:]
	if _, is := inContext[name]; is {
		sources = cli.NewValueSourceChain(setting{s, name})
	}
	base10 := cli.IntegerConfig{Base: 10}
	switch to := o.sets.(type) {
	case *bool:
		return &cli.BoolFlag{Name: name, Usage: o.help, Destination: to, Local: true, Category: category, Sources: sources}
	case *string:
		return &cli.StringFlag{Name: name, Usage: o.help, Destination: to, Value: *to, Local: true, Category: category, Sources: sources}
	case *time.Duration:
		return &cli.DurationFlag{Name: name, Usage: o.help, Destination: to, Value: *to, Local: true, Category: category, Sources: sources}
	case *float64:
		return &cli.FloatFlag{Name: name, Usage: o.help, Destination: to, Value: *to, Local: true, Category: category}
	case *int:
		return &cli.IntFlag{Name: name, Usage: o.help, Destination: to, Value: *to, Local: true, Category: category, Sources: sources, Config: base10, Validator: atLeast(0)}
	case *int64:
		return &cli.Int64Flag{Name: name, Usage: o.help, Destination: to, Value: *to, Local: true, Category: category, Config: base10, Validator: atLeast[int64](1)}
	}
	to, _ := o.sets.(*[]string) // or the flag is asked for what it says
	return &cli.StringSliceFlag{Name: name, Usage: o.help, Destination: to, Local: true, Category: category}
}

func atLeast[T int | int64](least T) func(T) error {
	return func(n T) error {
		if n < least {
			return fmt.Errorf("write %d or more", least)
		}
		return nil
	}
}

type setting struct {
	of   *session
	name string
}

func (s setting) Lookup() (string, bool) {
	text, is := s.of.config.lookup(s.of.program, s.name)
	if is {
		s.of.unsaid = append(s.of.unsaid, s.name)
	}
	return text, is
}

func (s setting) GoString() string { return s.String() }

func (s setting) String() string {
	if c := &s.of.config; cmp.Or(c.named, c.Current) != "" {
		return "the context " + cmp.Or(c.named, c.Current)
	}
	return "the environment"
}

func flagNames(flags []cli.Flag) (names []string) {
	for _, f := range flags {
		names = append(names, "-"+f.Names()[0])
	}
	return names
}
