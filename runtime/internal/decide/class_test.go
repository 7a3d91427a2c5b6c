package decide

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
)

// TestClassOf names errors that are hard to bring about.
func TestClassOf(t *testing.T) {
	for _, test := range []struct {
		want Class
		err  error
	}{
		{ClassOther, nil},
		{ClassOther, errors.New("no answer")},
		{ClassOther, redistest.Reply("CROSSSLOT Keys in request don't hash to the same slot")},
		{ClassOther, redistest.Reply("")},
		{ClassDial, redistest.Reply("ERR max number of clients reached")},
		{ClassMoved, redistest.Reply("MOVED 3999 127.0.0.1:6381")},
		{ClassMoved, redistest.Reply("ASK 3999 127.0.0.1:6381")},
		{ClassNoScript, redistest.Reply("NOSCRIPT No matching script. Please use EVAL.")},
		{ClassReadOnly, redistest.Reply("MISCONF Redis is configured to save RDB snapshots")},
		{ClassReadOnly, redistest.Reply("NOREPLICAS Not enough good replicas to write.")},
		// A command that is unknown or that the user may not call, and a key that
		// it may not touch: as the servers reply to EVALSHA, when the script ends
		// with the error, and when it goes on. The last two are of the script's
		// redis.call before Redis 7.0.
		{ClassAuth, redistest.Reply("NOPERM this user has no permissions to run the 'evalsha' command or its subcommand")},
		{ClassAuth, redistest.Reply("NOPERM this user has no permissions to run the 'evalsha' command")},
		{ClassAuth, redistest.Reply("NOPERM User u has no permissions to run the 'evalsha' command")},
		{ClassAuth, redistest.Reply("NOPERM this user has no permissions to access one of the keys used as arguments")},
		{ClassAuth, redistest.Reply("NOPERM No permissions to access a key")},
		{ClassAuth, redistest.Reply("ERR The user executing the script can't run this command or subcommand script: 104ae65debf45156ded1e8e613705534c8e62c17, on @user_script:1.")},
		{ClassAuth, redistest.Reply("ERR The user executing the script can't run this command or subcommand")},
		{ClassAuth, redistest.Reply("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments")},
		{ClassAuth, redistest.Reply("ERR ACL failure in script: User u has no permissions to run the 'time' command script: 104ae65debf45156ded1e8e613705534c8e62c17, on @user_script:1.")},
		{ClassAuth, redistest.Reply("ERR ACL failure in script: User u has no permissions to run the 'time' command script: on @user_script:1.")},
		{ClassAuth, redistest.Reply("ERR ACL failure in script: User u has no permissions to run the 'zadd' command")},
		{ClassAuth, redistest.Reply("ERR ACL failure in script: No permissions to access a key")},
		{ClassAuth, redistest.Reply("ERR Error running script (call to f_104ae65debf45156ded1e8e613705534c8e62c17): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand")},
		{ClassNoScript, redistest.Reply("ERR unknown command 'EVALSHA'")},
		{ClassNoScript, redistest.Reply("ERR unknown command `EVALSHA`")},
		{ClassNoScript, redistest.Reply("ERR Unknown Redis command called from script")},
		{ClassNoScript, redistest.Reply("ERR Unknown command called from script")},
		{ClassNoScript, redistest.Reply("ERR Unknown Redis command called from Lua script")},
		{ClassNoScript, redistest.Reply("ERR Unknown Redis command called from script script: 104ae65debf45156ded1e8e613705534c8e62c17, on @user_script:1.")},
		{ClassNoScript, redistest.Reply("ERR Error running script (call to f_104ae65debf45156ded1e8e613705534c8e62c17): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script")},
		{ClassScript, redistest.Reply("ERR Error compiling script (new function): user_script:1: unexpected symbol near 'return'")},
		{ClassWrongType, redistest.Reply("WRONGTYPE Operation against a key holding the wrong kind of value script: 74d9c4f061bc4590499fe86289136c684b10a8d1, on @user_script:1.")},
		{ClassWrongType, redistest.Reply("ERR Error running script (call to f_74d9c4f061bc4590499fe86289136c684b10a8d1): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value")},
		// As Redis 6.2 tells of other errors in a script.
		{ClassOOM, redistest.Reply("ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'.")},
		{ClassScript, redistest.Reply("ERR Error running script (call to f_1): @user_script:1: user_script:1: boom")},
		{ClassPool, redis.ErrPoolExhausted},
		{ClassTimeout, os.ErrDeadlineExceeded},
		{ClassConnection, io.ErrUnexpectedEOF},
		{ClassDial, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		{ClassDial, fmt.Errorf("store: %w", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"})},
		{ClassDial, fmt.Errorf("store: %w", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})},
	} {
		if got := ClassOf(test.err); got != test.want {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
	}
}
