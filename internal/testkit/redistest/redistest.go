// Package redistest starts real redis-server processes for tests: a
// standalone server ([Start]), a cluster of three masters and three replicas
// ([StartCluster]) and a master under three sentinels ([StartSentinel]).
//
// Everything listens on 127.0.0.1 only, keeps nothing on disk but a log and
// its own state in a directory of the test, and is stopped by the test's
// cleanup. A server starts in some ten milliseconds, so a test starts its own
// and shares it with nobody:
//
//	func TestStore(t *testing.T) {
//		server := redistest.Start(t)
//		client := server.Client(t)
//		...
//	}
//
// Where redis-server is not installed such a test is skipped; see [Require].
package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	// envServer names another binary than redis-server, on the PATH or by
	// path: redis 6.2, valkey-server. A wrapper script must exec it, so that
	// the process started is the server itself.
	envServer = "RATEGEN_REDIS_SERVER"

	// envRequire, set to 1, turns the skip of a test without Redis into a
	// failure: for a CI job that must not pass by testing nothing.
	envRequire = "RATEGEN_REQUIRE_REDIS"
)

// Require returns the path of the redis-server binary. Without one it skips
// the test, or fails it when RATEGEN_REQUIRE_REDIS=1. A binary that
// RATEGEN_REDIS_SERVER names and that is not there always fails the test:
// somebody asked for exactly that one.
func Require(tb testing.TB) string {
	tb.Helper()
	name := os.Getenv(envServer)
	named := name != ""
	if !named {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err == nil {
		// The server runs in a directory of its own, where a relative path
		// would mean something else.
		path, err = filepath.Abs(path)
	}
	if err == nil {
		return path
	}
	if named {
		tb.Fatalf("the server that %s names: %v", envServer, err)
	} else if os.Getenv(envRequire) == "1" {
		tb.Fatalf("redis-server is not on the PATH and %s=1: %v", envRequire, err)
	}
	tb.Skip("redis-server is not on the PATH: install it, or name the binary in " + envServer)
	return ""
}

// waitFor calls done every few milliseconds until it returns nil, and fails
// the test with its last error when that takes longer than limit.
func waitFor(tb testing.TB, limit time.Duration, what string, done func() error) {
	tb.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s: not within %v: %v", what, limit, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
