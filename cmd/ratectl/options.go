package main

import (
	"cmp"
	"flag"
	"os"
	"strings"
	"time"

	"github.com/rategen/rategen/runtime"
)

// Options are what the flags and the environment say.
type options struct {
	redis, user, passwordFile string
	cluster                   bool
	sentinel, sentinelUser    string
	sentinelPasswordFile      string
	db                        int
	tls                       bool
	ca, cert, tlsKey, tlsName string
	timeout                   time.Duration
	password                  string // of the environment or the file
	sentinelPassword          string

	namespace, rules, page, overrides string

	context string // -context

	format string
	yes    bool
	dry    bool   // -n
	why    string // -m
	only   string

	// Flags of single commands.
	parts, overwrite bool
	max              int64
	near             float64
	filter           string
	most             int
	every            time.Duration
	count            int
	pattern          string
	given            map[string]bool // the flags that the command line has
	enabled, mode    string
	window           time.Duration
	maxText          string
	duration, expiry time.Duration
	until            string
}

// redisFlags are those of every command that speaks to Redis.
func (o *options) redisFlags(f *flag.FlagSet, getenv func(string) string) {
	f.StringVar(&o.context, "context", "", "`name` of a context, which says what to reach: see ratectl contexts")
	f.StringVar(&o.redis, "redis", cmp.Or(getenv("RATECTL_REDIS"), "localhost:6379"), "`address` of Redis: host:port, several separated by commas, or a redis:// or rediss:// URL without a password (RATECTL_REDIS)")
	f.BoolVar(&o.cluster, "cluster", false, "the addresses are nodes of a cluster; found out by itself if Redis says so")
	f.StringVar(&o.sentinel, "sentinel", "", "the addresses are Sentinels, which know the master by this `name`")
	f.IntVar(&o.db, "db", 0, "`number` of the database")
	f.StringVar(&o.user, "user", getenv("RATECTL_USER"), "ACL user `name` (RATECTL_USER); its password is in RATECTL_PASSWORD")
	f.StringVar(&o.passwordFile, "password-file", "", "`file` with the password, in place of RATECTL_PASSWORD")
	f.StringVar(&o.sentinelUser, "sentinel-user", "", "ACL user `name` of the Sentinels; its password is in RATECTL_SENTINEL_PASSWORD")
	f.StringVar(&o.sentinelPasswordFile, "sentinel-password-file", "", "`file` with the password of the Sentinels")
	f.BoolVar(&o.tls, "tls", false, "connect with TLS")
	f.StringVar(&o.ca, "tls-ca", "", "PEM `file` with the authority that signed the certificate of Redis; means -tls")
	f.StringVar(&o.cert, "tls-cert", "", "PEM `file` with a certificate to show; means -tls")
	f.StringVar(&o.tlsKey, "tls-key", "", "PEM `file` with the key of -tls-cert")
	f.StringVar(&o.tlsName, "tls-name", "", "`name` that the certificate of Redis must have")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for each answer")
	f.StringVar(&o.namespace, "namespace", getenv("RATECTL_NAMESPACE"), "`name` given to runtime.WithNamespace (RATECTL_NAMESPACE)")
	f.StringVar(&o.overrides, "overrides", getenv("RATECTL_OVERRIDES"), "`key` of the hash that override.Redis reads (RATECTL_OVERRIDES)")
}

// ruleFlags are those of every command that knows rules.
func (o *options) ruleFlags(f *flag.FlagSet, getenv func(string) string) {
	f.StringVar(&o.rules, "rules", getenv("RATECTL_RULES"), "`file` that rategen list -json has printed, - for standard input, or the address of a live page (RATECTL_RULES)")
}

func (o *options) outputFlags(f *flag.FlagSet) {
	f.StringVar(&o.format, "o", "table", "`format` of the answer: table or json")
}

// secrets reads passwords from where they are allowed to be.
func (o *options) secrets(getenv func(string) string) (err error) {
	if o.password, err = secret(getenv("RATECTL_PASSWORD"), o.passwordFile); err == nil {
		o.sentinelPassword, err = secret(getenv("RATECTL_SENTINEL_PASSWORD"), o.sentinelPasswordFile)
	}
	return err
}

func secret(fromEnvironment, file string) (string, error) {
	if file == "" {
		return fromEnvironment, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("read the password: %v", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// key returns the key that the arguments after the rule name.
func (o *options) key(args []string) (*runtime.Key, error) {
	if o.parts {
		key := runtime.NewKey()
		for _, part := range args {
			key.AddString(part)
		}
		return key, nil
	}
	switch len(args) {
	case 0:
		return runtime.NewKey(), nil
	case 1:
		return runtime.ParseKey(args[0])
	}
	return nil, usagef("a KEY is one argument, its parts joined by colons; or give the parts as they are with -parts")
}
