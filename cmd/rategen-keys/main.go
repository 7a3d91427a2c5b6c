// Rategen-keys counts the keys of a rate limiter in Redis, and the memory that
// they take. It can give an expiry to keys without one.
//
// Usage:
//
//	rategen-keys [flags] prefix...
//
// A prefix is the start of a key: the namespace and a colon if there is a
// namespace, then the prefix of a rule or the start of it. A key counts for the
// longest prefix that it starts with. The default prefix of a rule starts with
// rate_limit:, so this counts the keys of all such rules of the program orders:
//
//	rategen-keys -url redis://localhost:6379 orders:rate_limit:
//
// The limiter leaves no key without an expiry. A key that has none was changed by
// another program, or belongs to one. The flag -heal gives it an expiry: use a
// prefix that only the limiter uses, and a duration longer than any window.
//
// The flags are:
//
//	-url redis://user:password@host:port/database
//		the server, or any node of a cluster; rediss for TLS
//	-cluster
//		the server is a node of a cluster: walk over all masters
//	-heal duration
//		let keys without an expiry live for this long, 48h for instance
//	-json
//		print a JSON object for each prefix, one a line
//	-timeout duration
//		give up after this long, by default never
//
// Rategen-keys walks over the whole database with SCAN, some 200 keys at a time,
// so that it is no burden to other clients. The exit code is 1 if it did not get
// to the end; it then prints the counts so far. The exit code is 2 if the command
// line is wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program, but for what it is given by the system.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("rategen-keys", flag.ContinueOnError)
	flags.SetOutput(stderr)
	addr := flags.String("url", "redis://localhost:6379", "the server, or any node of a cluster")
	cluster := flags.Bool("cluster", false, "the server is a node of a cluster: walk over all masters")
	heal := flags.Duration("heal", 0, "let keys without an expiry live for this long")
	asJSON := flags.Bool("json", false, "print a JSON object for each prefix")
	timeout := flags.Duration("timeout", 0, "give up after this long, 0: never")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: rategen-keys [flags] prefix...")
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() == 0:
		flags.Usage()
		return 2
	}
	client, err := connect(*addr, *cluster)
	if err != nil {
		fmt.Fprintln(stderr, "rategen-keys:", withoutURL(err))
		return 2
	}
	defer client.Close()
	if *timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *timeout)
		defer cancel()
	}
	var groups []*runtime.KeyGroup
	for _, prefix := range flags.Args() {
		groups = append(groups, &runtime.KeyGroup{Prefix: prefix, Expiry: *heal})
	}
	failed := runtime.NewRedisStore(client).Survey(ctx, groups...)
	if err := print(stdout, groups, *asJSON); err != nil {
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		fmt.Fprintln(stderr, "rategen-keys:", failed)
		return 1
	}
	return 0
}

// connect returns a client of a server or cluster.
func connect(addr string, cluster bool) (redis.UniversalClient, error) {
	if cluster {
		options, err := redis.ParseClusterURL(addr)
		if err != nil {
			return nil, err
		}
		options.ContextTimeoutEnabled, options.DialerRetries = true, 1
		return redis.NewClusterClient(options), nil
	}
	options, err := redis.ParseURL(addr)
	if err != nil {
		return nil, err
	}
	options.ContextTimeoutEnabled, options.DialerRetries = true, 1
	return redis.NewClient(options), nil
}

// withoutURL returns an error that does not quote the URL, or a part of it, which
// may hold a password.
func withoutURL(err error) error {
	if quoted := (*url.Error)(nil); errors.As(err, &quoted) {
		return errors.New("-url is no URL: write % / ? # and @ in a user or password as %25 %2F %3F %23 and %40")
	}
	return err
}

// A line is what is printed about a prefix.
type line struct {
	Prefix  string `json:"prefix"`
	Keys    int64  `json:"keys"`
	Bytes   int64  `json:"bytes"`
	Endless int64  `json:"endless"`
	Healed  int64  `json:"healed"`
}

func print(w io.Writer, groups []*runtime.KeyGroup, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		for _, g := range groups {
			if err := encoder.Encode(line{g.Prefix, g.Keys, g.Bytes, g.Endless, g.Healed}); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "keys\tbytes\tendless\thealed\t  prefix")
	for _, g := range groups {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t  %q\n", g.Keys, g.Bytes, g.Endless, g.Healed, g.Prefix)
	}
	return table.Flush()
}
