package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

const noPasswordHere = "-redis has a password, which every user of this machine can read in the list of processes: " +
	"take it out, and set RATECTL_PASSWORD or name a file with -password-file"

// connect returns a client of the Redis that the options name, after it has answered.
func (o *options) connect(ctx context.Context) (redis.UniversalClient, error) {
	u, err := o.clientOptions()
	if err != nil {
		return nil, err
	}
	client := redis.NewUniversalClient(u)
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.cluster || o.sentinel != "" {
		err = client.Ping(ctx).Err()
	} else {
		var mode string
		mode, err = modeOf(ctx, client)
		if mode == "cluster" && err == nil {
			_ = client.Close()
			o.cluster, u.IsClusterMode = true, true
			client = redis.NewUniversalClient(u)
			err = client.Ping(ctx).Err()
		} else if mode == "sentinel" && err == nil {
			err = usagef("%s is a Sentinel: say with -sentinel by which name it knows the master", o.redis)
		}
	}
	if err != nil {
		_ = client.Close()
		return nil, o.explained(err)
	}
	return client, nil
}

// modeOf returns the mode of a server: standalone, cluster or sentinel.
func modeOf(ctx context.Context, client redis.UniversalClient) (string, error) {
	said, err := client.Do(ctx, "HELLO").Result()
	switch {
	case hasReply(err, "NOPERM") || hasReply(err, "ERR"): // it may still be of use
		return "", client.Ping(ctx).Err()
	case err != nil:
		return "", err
	}
	switch said := said.(type) {
	case map[any]any:
		mode, _ := said["mode"].(string)
		return mode, nil
	case []any:
		for i := 0; i+1 < len(said); i += 2 {
			if said[i] == "mode" {
				mode, _ := said[i+1].(string)
				return mode, nil
			}
		}
	}
	return "", nil
}

// clientOptions returns the options of the client.
func (o *options) clientOptions() (*redis.UniversalOptions, error) {
	u := &redis.UniversalOptions{
		DB: o.db, Username: o.user, Password: o.password,
		SentinelUsername: o.sentinelUser, SentinelPassword: o.sentinelPassword,
		MasterName: o.sentinel, IsClusterMode: o.cluster,
		ContextTimeoutEnabled: true, DialTimeout: o.timeout, ReadTimeout: o.timeout, WriteTimeout: o.timeout,
		MaxRetries: 1, DialerRetries: 1, ClientName: "ratectl",
	}
	if o.cluster && o.sentinel != "" {
		return nil, usagef("a cluster has no Sentinels: leave out -cluster or -sentinel")
	}
	if strings.Contains(o.redis, "://") {
		if err := o.fromURL(u); err != nil {
			return nil, err
		}
	} else {
		u.Addrs = strings.Split(o.redis, ",")
		for _, addr := range u.Addrs {
			if user, _, has := strings.Cut(addr, "@"); has && strings.Contains(user, ":") {
				return nil, usagef(noPasswordHere)
			}
			if !strings.Contains(addr, ":") || strings.Contains(addr, "@") {
				return nil, usagef("-redis: %q is no address: write host:port, or a redis:// URL", addr)
			}
		}
	}
	if len(u.Addrs) > 1 && !o.cluster && o.sentinel == "" {
		return nil, usagef("-redis names several addresses: add -cluster, or -sentinel and the name of the master")
	}
	return u, o.secure(u)
}

// fromURL adds the options of a URL. Its errors quote no part of the URL.
func (o *options) fromURL(u *redis.UniversalOptions) error {
	parsed, err := url.Parse(o.redis)
	if err != nil {
		return usagef("-redis is no URL: write redis://user@host:port/database, and %% / ? # and @ in a user as %%25 %%2F %%3F %%23 and %%40; the password belongs into RATECTL_PASSWORD")
	}
	if _, has := parsed.User.Password(); has || parsed.Query().Has("password") {
		return usagef(noPasswordHere)
	}
	if parsed.Query().Has("skip_verify") {
		return usagef("-redis: skip_verify would believe any server: name the authority with -tls-ca, or the certificate's name with -tls-name")
	}
	said, err := redis.ParseURL(o.redis)
	if err != nil {
		return usagef("-redis: %v", err)
	}
	u.Addrs = []string{said.Addr}
	if said.DB != 0 {
		u.DB = said.DB
	}
	if said.Username != "" {
		u.Username = said.Username
	}
	u.TLSConfig = said.TLSConfig
	o.redis = said.Addr // errors name it
	return nil
}

// secure adds TLS.
func (o *options) secure(u *redis.UniversalOptions) error {
	if o.tls || o.ca != "" || o.cert != "" || o.tlsName != "" {
		if u.TLSConfig == nil {
			u.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return usagef("-tls-ca: %v", err)
		}
		u.TLSConfig.RootCAs = x509.NewCertPool()
		if !u.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
			return usagef("-tls-ca: %s has no certificate in PEM", o.ca)
		}
	}
	if (o.cert == "") != (o.tlsKey == "") {
		return usagef("-tls-cert and -tls-key belong together: give both or none")
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.tlsKey)
		if err != nil {
			return usagef("-tls-cert: %v", err)
		}
		u.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	if o.tlsName != "" {
		u.TLSConfig.ServerName = o.tlsName
	}
	return nil
}
