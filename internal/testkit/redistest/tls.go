package redistest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// ServeTLS has the server speak TLS on its port and nothing else, until a Restart, and
// ends the connections that there are. It makes a new certificate each time, and returns
// what a client needs to believe that one alone. A server that was built without TLS
// skips the test.
func (s *Server) ServeTLS(tb testing.TB) *tls.Config {
	tb.Helper()
	certFile, keyFile, config := Certificate(tb)
	without := false
	err := s.ask(func(ctx context.Context, client *redis.Client) error {
		set := func(name, value string) error { return client.ConfigSet(ctx, name, value).Err() }
		err := errors.Join(set("tls-cert-file", certFile), set("tls-key-file", keyFile), set("tls-ca-cert-file", certFile), set("tls-auth-clients", "no"))
		if err == nil {
			err = anyTLS(set)
		}
		if without = err != nil; without {
			return err
		}
		if err := errors.Join(set("port", "0"), set("tls-port", s.port())); err != nil {
			return err
		}
		return client.ClientKillByFilter(ctx, "TYPE", "normal").Err() // all but this one
	})
	if without {
		tb.Skipf("the server was built without TLS: %v", err)
	}
	if err != nil {
		tb.Fatalf("serve TLS: %v", err)
	}
	return config
}

// anyTLS has the server serve TLS on a port beside its own, and returns an error if it cannot:
// a server without TLS may know the names of these settings, and crash.
func anyTLS(set func(name, value string) error) error {
	port, err := freePort(portPlain)
	if err != nil {
		return err
	}
	return set("tls-port", strconv.Itoa(port))
}

// Certificate makes a certificate for the loopback address that is its own authority, for
// servers and clients. It returns the files of it and its key, and what believes it alone.
func Certificate(tb testing.TB) (certFile, keyFile string, believes *tls.Config) {
	tb.Helper()
	must := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatalf("make a certificate: %v", err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(loopback)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(err)
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	dir := tb.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(os.WriteFile(certFile, certPEM, 0o600))
	must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
