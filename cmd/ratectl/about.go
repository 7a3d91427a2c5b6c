package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/rategen/rategen/internal/operate"
)

// A command is a struct with a [session], whose fields are set by its flags.
type command interface {
	base() *session
	about() about
	run(ctx context.Context, args []string) error
}

// About says how a command is called, what it takes, and what it needs.
type about struct {
	name  string // one or two words
	args  string // as in a line of usage
	short string
	long  string
	flags []cli.Flag // its own
	needs need
	min   int // arguments
	max   int // or -1
}

// usage returns how the command is written.
func (a about) usage() string { return strings.TrimSpace(a.name + " " + a.args) }

// A need is what a command requires.
type need uint8

const (
	prints need = 1 << iota // it has an answer
	needRedis
	needRules
	mayRules // it uses rules if there are some
	mayRedis // it opens Redis by itself
	judges   // it needs valid overrides; other commands go on without
	replays  // records: which rules are to be other ones the command line says, and no environment

	readsRules = prints | needRedis | needRules
	judgesKeys = readsRules | judges
)

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
func number(to *int, name string, value, least int, usage string) *cli.IntFlag {
	return &cli.IntFlag{Name: name, Usage: usage, Destination: to, Value: value, Local: true, Config: cli.IntegerConfig{Base: 10}, Validator: atLeast(least)}
}

func atLeast[T int | int64](least T) func(T) error {
	return func(n T) error {
		if n < least {
			return fmt.Errorf("write %d or more", least)
		}
		return nil
	}
}

// Flags of several commands.
func limitFlag(to *int) cli.Flag {
	return number(to, "limit", 100, 0, "show the first `n` lines at most")
}

func (s *session) partsFlag() cli.Flag {
	return yesNo(&s.parts, "parts", "the arguments after RULE are the parts of the key, without escapes")
}

func (s *session) nearFlag() cli.Flag {
	return &cli.FloatFlag{Name: "near", Usage: "`share` of the limit from which a key is near", Destination: &s.Near, Value: operate.NearShare, Local: true}
}

func (s *session) maxFlag() cli.Flag {
	return &cli.Int64Flag{Name: "max", Usage: "use this `number` as the max, for rules whose calls bring their own", Destination: &s.Max, Local: true, Config: cli.IntegerConfig{Base: 10}, Validator: atLeast[int64](1)}
}

// sharedFlags are those of every command with such needs.
func (s *session) sharedFlags(needs need) (all []cli.Flag) {
	if needs&(needRules|mayRules) != 0 {
		all = append(all, s.setting(&s.rules, "rules", "`file` that rategen list -json has printed, - for standard input, or the address of a live page (RATECTL_RULES)"))
	}
	if needs&prints != 0 {
		format := text(&s.format, "o", "`format` of the answer: table or json")
		format.Value, format.Category = "table", ofEveryCommand
		wide := yesNo(&s.wide, "wide", "let tables be wider than the terminal, or than COLUMNS says")
		wide.Category = ofEveryCommand
		all = append(all, format, wide)
	}
	if needs&(needRedis|mayRedis) == 0 {
		return all
	}
	named := text(&s.config.named, "context", "`name` of a context, which says what to reach: see ratectl contexts")
	named.Category = ofEveryCommand
	redis := s.setting(&s.redis, "redis", "`address` of Redis: host:port, several separated by commas, or a redis:// or rediss:// URL without a password (RATECTL_REDIS)")
	redis.Value = "localhost:6379"
	return append(all, named, redis,
		s.switched(&s.said.IsClusterMode, "cluster", "the addresses are nodes of a cluster; found out by itself if Redis says so"),
		s.setting(&s.said.MasterName, "sentinel", "the addresses are Sentinels, which know the master by this `name`"),
		&cli.IntFlag{Name: "db", Usage: "`number` of the database", Destination: &s.said.DB, Local: true, Category: ofEveryCommand, Sources: s.sources("db"), Config: cli.IntegerConfig{Base: 10}},
		s.setting(&s.said.Username, "user", "ACL user `name` (RATECTL_USER); its password is in RATECTL_PASSWORD"),
		s.setting(&s.passwordFile, "password-file", "`file` with the password, in place of RATECTL_PASSWORD"),
		s.setting(&s.said.SentinelUsername, "sentinel-user", "ACL user `name` of the Sentinels; its password is in RATECTL_SENTINEL_PASSWORD"),
		s.setting(&s.sentinelPasswordFile, "sentinel-password-file", "`file` with the password of the Sentinels"),
		s.switched(&s.tls, "tls", "connect with TLS"),
		s.setting(&s.ca, "tls-ca", "PEM `file` with the authority that signed the certificate of Redis, and of a live page; means -tls"),
		s.setting(&s.cert, "tls-cert", "PEM `file` with a certificate to show; means -tls"),
		s.setting(&s.tlsKey, "tls-key", "PEM `file` with the key of -tls-cert"),
		s.setting(&s.tlsName, "tls-name", "`name` that the certificate of Redis must have"),
		&cli.DurationFlag{Name: "timeout", Usage: "how long to wait for each answer", Destination: &s.Timeout, Value: 5 * time.Second, Local: true, Category: ofEveryCommand, Sources: s.sources("timeout")},
		s.setting(&s.Namespace, "namespace", "`name` given to runtime.WithNamespace (RATECTL_NAMESPACE)"),
		s.setting(&s.Hash, "overrides", "`key` of the hash that override.Redis reads (RATECTL_OVERRIDES)"),
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
