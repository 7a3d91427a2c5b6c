package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"
)

// nearShare is the share of its limit from which on a key is near it, if nobody says.
const nearShare = 0.8

// ofEveryCommand is the category of the flags that commands share.
const ofEveryCommand = "Flags of every command"

func yesNo(to *bool, name, usage string) *cli.BoolFlag {
	return &cli.BoolFlag{Name: name, Usage: usage, Destination: to, Local: true}
}

func text(to *string, name, usage string) *cli.StringFlag {
	return &cli.StringFlag{Name: name, Usage: usage, Destination: to, Local: true}
}

func duration(to *time.Duration, name string, value time.Duration, usage string) *cli.DurationFlag {
	return &cli.DurationFlag{Name: name, Usage: usage, Destination: to, Value: value, Local: true}
}

// number is a flag whose value is at least something.
func number(to *int64, name string, value, least int64, usage string) cli.Flag {
	return &cli.Int64Flag{Name: name, Usage: usage, Destination: to, Value: value, Local: true, Config: cli.IntegerConfig{Base: 10}, Validator: func(n int64) error {
		if n < least {
			return fmt.Errorf("write %d or more", least)
		}
		return nil
	}}
}

// Options are what the flags of single commands say. A command uses those that it has.
type options struct {
	yes, dry, parts, overwrite, skip                                      bool
	why, filter, until, mode, enabled, pattern, only, maxText, secretFile string
	renames                                                               []string
	limit, count                                                          int64
	max                                                                   int64         // of calls that bring their own; 0: not known
	near                                                                  float64       // the share of its limit from which on a key is near it
	wait                                                                  time.Duration // for the processes; 0: not at all
	lasts                                                                 time.Duration // 0: not said
	every, since, expiry, window                                          time.Duration
}

// changeFlags are those of every change of overrides, and endFlags of one that may end, and may have
// to be confirmed.
const (
	changeFlags = "n m wait "
	endFlags    = changeFlags + "yes for until "
)

// ownFlags are the flags that only some commands have. One has another name here if two commands
// mean different things by it.
func (s *session) ownFlags() map[string]cli.Flag {
	return map[string]cli.Flag{
		"yes":                 yesNo(&s.yes, "yes", "do not ask for confirmation"),
		"n":                   yesNo(&s.dry, "n", "change nothing: print what would be changed"),
		"m":                   text(&s.why, "m", "`reason` of the change, for the history; who makes it is in RATECTL_WHO or USER"),
		"wait":                duration(&s.wait, "wait", 0, "how `long` to wait until it is in force in all processes that follow the hash"),
		"for":                 duration(&s.lasts, "for", 0, "for how `long`; then the previous permanent value holds"),
		"until":               text(&s.until, "until", "`time` of expiry, as 2026-11-22T15:00:00Z, or never for none"),
		"limit":               number(&s.limit, "limit", 100, 0, "show the first `n` lines at most"),
		"parts":               yesNo(&s.parts, "parts", "the arguments after RULE are the parts of the key, without escapes"),
		"near":                &cli.FloatFlag{Name: "near", Usage: "`share` of the limit from which a key is near", Destination: &s.near, Value: nearShare, Local: true},
		"max":                 number(&s.max, "max", 0, 1, "use this `number` as the max, for rules whose calls bring their own"),
		"state":               text(&s.filter, "state", "only keys in these `states`, separated by commas: near, refused, held (since a peer has asked for it), blocked, broken (by another program), ok, off"),
		"every":               duration(&s.every, "every", 2*time.Second, "time between two tables"),
		"count":               number(&s.count, "count", 0, 0, "end after `n` tables (default: 1 if standard output is no terminal, and otherwise never)"),
		"page":                s.sourced(text(&s.page, "page", "show the rates of the live page at this `URL` (RATECTL_PAGE)")),
		"since":               duration(&s.since, "since", time.Hour, "how `long` to look back"),
		"refused-secret-file": s.sourced(text(&s.secretFile, "refused-secret-file", "`file` with the secret of runtime.WithRefusals, in place of RATECTL_REFUSED_SECRET")),
		"set-max":             text(&s.maxText, "max", "admit `n` in a window; 0 admits nobody"),
		"window":              duration(&s.window, "window", 0, "the time that the max refers to"),
		"mode":                text(&s.mode, "mode", "enforce, soft or shadow"),
		"enabled":             text(&s.enabled, "enabled", "`bool`, of which false removes the limit and true restores it"),
		"keys":                text(&s.pattern, "keys", "for the keys of a `pattern`, such as premium-* or one key, in place of the rule"),
		"only":                text(&s.only, "only", "remove only these `fields`, separated by commas: max, window, mode, enabled, block, allow"),
		"expiry":              duration(&s.expiry, "expiry", 0, "keep keys for this long (default: as long as the rule's keys may need)"),
		"overwrite":           yesNo(&s.overwrite, "overwrite", "replace counts that are there, though they may be newer"),
		"skip":                yesNo(&s.skip, "skip", "leave out the lines that do not fit, and name them"),
		"rename":              &cli.StringSliceFlag{Name: "rename", Usage: "`OLD=NEW`: what the file says of one rule is of another", Destination: &s.renames, Local: true},
	}
}

// sharedFlags are those of every command with such needs.
func (s *session) sharedFlags(needs need) (all []cli.Flag) {
	if needs&(needRules|mayRules) != 0 {
		all = append(all, s.setting(&s.rules, "rules", "`file` that rategen list -json has printed, - for standard input, or the address of a live page (RATECTL_RULES)"))
	}
	if needs&prints != 0 {
		format := text(&s.format, "o", "`format` of the answer: table or json")
		format.Value, format.Category = "table", ofEveryCommand
		all = append(all, format)
	}
	if needs&needRedis == 0 {
		return all
	}
	named := text(&s.config.named, "context", "`name` of a context, which says what to reach: see ratectl contexts")
	named.Category = ofEveryCommand
	redis := s.setting(&s.redis, "redis", "`address` of Redis: host:port, several separated by commas, or a redis:// or rediss:// URL without a password (RATECTL_REDIS)")
	redis.Value = "localhost:6379"
	return append(all, named, redis,
		s.switched(&s.cluster, "cluster", "the addresses are nodes of a cluster; found out by itself if Redis says so"),
		s.setting(&s.sentinel, "sentinel", "the addresses are Sentinels, which know the master by this `name`"),
		&cli.IntFlag{Name: "db", Usage: "`number` of the database", Destination: &s.db, Local: true, Category: ofEveryCommand, Sources: s.sources("db"), Config: cli.IntegerConfig{Base: 10}},
		s.setting(&s.user, "user", "ACL user `name` (RATECTL_USER); its password is in RATECTL_PASSWORD"),
		s.setting(&s.passwordFile, "password-file", "`file` with the password, in place of RATECTL_PASSWORD"),
		s.setting(&s.sentinelUser, "sentinel-user", "ACL user `name` of the Sentinels; its password is in RATECTL_SENTINEL_PASSWORD"),
		s.setting(&s.sentinelPasswordFile, "sentinel-password-file", "`file` with the password of the Sentinels"),
		s.switched(&s.tls, "tls", "connect with TLS"),
		s.setting(&s.ca, "tls-ca", "PEM `file` with the authority that signed the certificate of Redis, and of a live page; means -tls"),
		s.setting(&s.cert, "tls-cert", "PEM `file` with a certificate to show; means -tls"),
		s.setting(&s.tlsKey, "tls-key", "PEM `file` with the key of -tls-cert"),
		s.setting(&s.tlsName, "tls-name", "`name` that the certificate of Redis must have"),
		&cli.DurationFlag{Name: "timeout", Usage: "how long to wait for each answer", Destination: &s.timeout, Value: 5 * time.Second, Local: true, Category: ofEveryCommand, Sources: s.sources("timeout")},
		s.setting(&s.namespace, "namespace", "`name` given to runtime.WithNamespace (RATECTL_NAMESPACE)"),
		s.setting(&s.overrides, "overrides", "`key` of the hash that override.Redis reads (RATECTL_OVERRIDES)"),
	)
}

// setting is a flag that a context may have, as switched is.
func (s *session) setting(to *string, name, usage string) *cli.StringFlag {
	f := s.sourced(text(to, name, usage))
	f.Category = ofEveryCommand
	return f
}

func (s *session) sourced(f *cli.StringFlag) *cli.StringFlag {
	f.Sources = s.sources(f.Name)
	return f
}

func (s *session) switched(to *bool, name, usage string) *cli.BoolFlag {
	f := yesNo(to, name, usage)
	f.Category, f.Sources = ofEveryCommand, s.sources(name)
	return f
}

// sources are where a flag has its value from that the command line does not have.
func (s *session) sources(name string) cli.ValueSourceChain {
	return cli.NewValueSourceChain(setting{s, name})
}

// A setting is what the environment or a context says for a flag.
type setting struct {
	of   *session
	name string
}

func (s setting) Lookup() (string, bool) { return s.of.config.lookup(s.of.program, s.name) }
func (s setting) GoString() string       { return s.String() }

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
