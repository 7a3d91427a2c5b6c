package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/operate"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/observe"
)

const noPasswordHere = "-redis has a password, which every user of this machine can read in the list of processes: " +
	"take it out, and set RATECTL_PASSWORD or name a file with -password-file"

// A server is the Redis that flags name.
type server struct {
	redis, passwordFile, sentinelPasswordFile string
	tls                                       bool
	ca, cert, tlsKey, tlsName                 string
	dial                                      redis.UniversalOptions // with the passwords of the environment or the files
}

// secret returns a password from where it may be.
func (p *program) secret(variable, file string) (string, error) {
	if file == "" {
		return p.getenv(variable), nil
	}
	if about, err := os.Stat(file); err == nil && about.Mode().Perm()&0o004 != 0 && goruntime.GOOS != "windows" {
		p.logger().Printf("every user of this machine can read the password in %s: chmod 600 it", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("read the password: %v", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

func (s *session) connect(ctx context.Context) error {
	u, err := s.clientOptions()
	if err != nil {
		return err
	}
	s.Client = redis.NewUniversalClient(u)
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	if u.IsClusterMode || u.MasterName != "" {
		err := s.Client.Ping(ctx).Err()
		if one, is := s.Client.(*redis.Client); is && err == nil {
			s.redis = operate.AddrOf(ctx, one) // which the Sentinels have named
		}
		return err
	}
	mode, err := modeOf(ctx, s.Client)
	if err == nil && mode == "sentinel" {
		return usagef("%s is a Sentinel: say with -sentinel by which name it knows the master", s.redis)
	}
	if err == nil && mode == "cluster" {
		_ = s.Client.Close()
		u.IsClusterMode = true
		s.Client = redis.NewUniversalClient(u)
		return s.Client.Ping(ctx).Err()
	}
	return err
}

// modeOf returns the mode of a server: standalone, cluster or sentinel.
func modeOf(ctx context.Context, client redis.UniversalClient) (string, error) {
	said, err := client.Do(ctx, "HELLO").Result()
	if operate.Replied(err, "NOPERM") || operate.Replied(err, "ERR") { // it may still be of use
		return "", client.Ping(ctx).Err()
	}
	if err != nil {
		return "", err
	}
	properties, _ := said.(map[any]any)
	mode, _ := properties["mode"].(string)
	return mode, nil
}

func (s *session) clientOptions() (*redis.UniversalOptions, error) {
	u := new(s.dial)
	u.ContextTimeoutEnabled, u.DialTimeout, u.ReadTimeout, u.WriteTimeout = true, s.Timeout, s.Timeout, s.Timeout
	u.MaxRetries, u.DialerRetries, u.ClientName = 1, 1, "ratectl"
	if u.IsClusterMode && u.MasterName != "" {
		return nil, usagef("a cluster has no Sentinels: leave out -cluster or -sentinel")
	}
	if strings.Contains(s.redis, "://") {
		if err := s.fromURL(u); err != nil {
			return nil, err
		}
	} else {
		u.Addrs = strings.Split(s.redis, ",")
		for _, addr := range u.Addrs {
			user, _, has := strings.Cut(addr, "@")
			if has && strings.Contains(user, ":") {
				return nil, usagef(noPasswordHere)
			}
			if has || !strings.Contains(addr, ":") {
				return nil, usagef("-redis: %q is no address: write host:port, or a redis:// URL", addr)
			}
		}
	}
	if len(u.Addrs) > 1 && !u.IsClusterMode && u.MasterName == "" {
		return nil, usagef("-redis names several addresses: add -cluster, or -sentinel and the name of the master")
	}
	return u, s.secure(u)
}

// fromURL adds the options of a URL. Its errors quote no part of the URL.
func (s *session) fromURL(u *redis.UniversalOptions) error {
	parsed, err := url.Parse(s.redis)
	if err != nil {
		return usagef("-redis is no URL: write redis://user@host:port/database, and %% / ? # and @ in a user as %%25 %%2F %%3F %%23 and %%40; the password belongs into RATECTL_PASSWORD")
	}
	if _, has := parsed.User.Password(); has || parsed.Query().Has("password") {
		return usagef(noPasswordHere)
	}
	if parsed.Query().Has("skip_verify") {
		return usagef("-redis: skip_verify would believe any server: name the authority with -tls-ca, or the certificate's name with -tls-name")
	}
	said, err := redis.ParseURL(s.redis)
	if err != nil {
		return usagef("-redis: %v", err)
	}
	given := parsed.Query()
	delete(given, "db")
	for _, name := range slices.Sorted(maps.Keys(given)) {
		s.logger().Printf("-redis: of the parameters of a URL db alone has an effect here, and not %s: see the flags of ratectl", name)
	}
	u.Addrs = []string{said.Addr}
	u.DB, u.Username, u.TLSConfig = cmp.Or(said.DB, u.DB), cmp.Or(said.Username, u.Username), said.TLSConfig
	s.redis = said.Addr // errors name it
	return nil
}

func (s *session) secure(u *redis.UniversalOptions) error {
	if u.TLSConfig == nil && (s.tls || s.ca != "" || s.cert != "" || s.tlsName != "") {
		u.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	authorities, err := s.authorities()
	if err != nil {
		return err
	}
	if authorities != nil {
		u.TLSConfig.RootCAs = authorities
	}
	if (s.cert == "") != (s.tlsKey == "") {
		return usagef("-tls-cert and -tls-key belong together: give both or none")
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.tlsKey)
		if err != nil {
			return usagef("-tls-cert: %v", err)
		}
		u.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	if s.tlsName != "" {
		u.TLSConfig.ServerName = s.tlsName
	}
	return nil
}

// authorities returns those that -tls-ca names; nil: those of the machine.
func (s *session) authorities() (*x509.CertPool, error) {
	if s.ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, usagef("-tls-ca: %v", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usagef("-tls-ca: %s has no certificate in PEM", s.ca)
	}
	return pool, nil
}

// explained returns an error of a command with its remedy, if it is Redis's.
func (s *session) explained(err error) error {
	_, told := errors.AsType[failure](err)
	_, wrong := errors.AsType[operate.Failure](err)
	if _, other := errors.AsType[foreign](err); err == nil || told || wrong || other {
		return err
	}
	err = operate.InFull(err)
	switch {
	case operate.Replied(err, "NOAUTH"):
		return fmt.Errorf("redis wants a password: set RATECTL_PASSWORD, or name a file with -password-file: %w", err)
	case operate.Replied(err, "WRONGPASS"):
		return fmt.Errorf("redis refuses the user or the password: check -user, and RATECTL_PASSWORD or -password-file: %w", err)
	case operate.Replied(err, "NOPERM"):
		return fmt.Errorf("redis does not allow the user %q to do this: see the rights in docs/ratectl.md: %w", s.dial.Username, err)
	case operate.Replied(err, "READONLY"):
		return fmt.Errorf("redis at %s is a replica: name its master with -redis, or the Sentinels with -sentinel: %w", s.redis, err)
	case operate.RefusesWrites(err) != "":
		return fmt.Errorf("redis refuses this: %s: %w", operate.RefusesWrites(err), err)
	case errors.Is(err, context.DeadlineExceeded), runtime.ClassOf(err) == observe.ClassTimeout:
		return fmt.Errorf("redis at %s gave no answer within %v, see -timeout: %w", s.redis, s.Timeout, err)
	case operate.Replied(err, "MOVED") || operate.Replied(err, "CROSSSLOT"):
		return fmt.Errorf("redis is a cluster: add -cluster: %w", err)
	case runtime.ClassOf(err) == observe.ClassDial || runtime.ClassOf(err) == observe.ClassConnection:
		return fmt.Errorf("redis at %s: %w", s.redis, err)
	}
	return err
}
