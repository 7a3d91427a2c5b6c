package failure

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
		{Other, nil},
		{Other, errors.New("no answer")},
		{Other, redistest.Reply("CROSSSLOT Keys in request don't hash to the same slot")},
		{Other, redistest.Reply("")},
		{Dial, redistest.Reply("ERR max number of clients reached")},
		{Moved, redistest.Reply("MOVED 3999 127.0.0.1:6381")},
		{Moved, redistest.Reply("ASK 3999 127.0.0.1:6381")},
		{NoScript, redistest.Reply("NOSCRIPT No matching script. Please use EVAL.")},
		{ReadOnly, redistest.Reply("MISCONF Redis is configured to save RDB snapshots")},
		{ReadOnly, redistest.Reply("NOREPLICAS Not enough good replicas to write.")},
		// A command that is unknown or that the user may not call, and a key that
		// it may not touch: as the servers reply to EVALSHA, when the script ends
		// with the error, and when it goes on. The last two are of the script's
		// redis.call before Redis 7.0.
		{Auth, redistest.Reply("NOPERM this user has no permissions to run the 'evalsha' command or its subcommand")},
		{Auth, redistest.Reply("NOPERM this user has no permissions to run the 'evalsha' command")},
		{Auth, redistest.Reply("NOPERM User u has no permissions to run the 'evalsha' command")},
		{Auth, redistest.Reply("NOPERM this user has no permissions to access one of the keys used as arguments")},
		{Auth, redistest.Reply("NOPERM No permissions to access a key")},
		{Auth, redistest.Reply("ERR The user executing the script can't run this command or subcommand script: 104ae65debf45156ded1e8e613705534c8e62c17, on @user_script:1.")},
		{Auth, redistest.Reply("ERR The user executing the script can't run this command or subcommand")},
		{Auth, redistest.Reply("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments")},
		{Auth, redistest.Reply("ERR ACL failure in script: User u has no permissions to run the 'time' command script: 104ae65debf45156ded1e8e613705534c8e62c17, on @user_script:1.")},
		{Auth, redistest.Reply("ERR ACL failure in script: User u has no permissions to run the 'time' command script: on @user_script:1.")},
		{Auth, redistest.Reply("ERR ACL failure in script: User u has no permissions to run the 'zadd' command")},
		{Auth, redistest.Reply("ERR ACL failure in script: No permissions to access a key")},
		{Auth, redistest.Reply("ERR Error running script (call to f_104ae65debf45156ded1e8e613705534c8e62c17): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand")},
		{NoScript, redistest.Reply("ERR unknown command 'EVALSHA'")},
		{NoScript, redistest.Reply("ERR unknown command `EVALSHA`")},
		{NoScript, redistest.Reply("ERR Unknown Redis command called from script")},
		{NoScript, redistest.Reply("ERR Unknown command called from script")},
		{NoScript, redistest.Reply("ERR Unknown Redis command called from Lua script")},
		{NoScript, redistest.Reply("ERR Unknown Redis command called from script script: 104ae65debf45156ded1e8e613705534c8e62c17, on @user_script:1.")},
		{NoScript, redistest.Reply("ERR Error running script (call to f_104ae65debf45156ded1e8e613705534c8e62c17): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script")},
		{Script, redistest.Reply("ERR Error compiling script (new function): user_script:1: unexpected symbol near 'return'")},
		{WrongType, redistest.Reply("WRONGTYPE Operation against a key holding the wrong kind of value script: 74d9c4f061bc4590499fe86289136c684b10a8d1, on @user_script:1.")},
		{WrongType, redistest.Reply("ERR Error running script (call to f_74d9c4f061bc4590499fe86289136c684b10a8d1): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value")},
		// As Redis 6.2 tells of other errors in a script.
		{OOM, redistest.Reply("ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'.")},
		{Script, redistest.Reply("ERR Error running script (call to f_1): @user_script:1: user_script:1: boom")},
		{Pool, redis.ErrPoolExhausted},
		{Timeout, os.ErrDeadlineExceeded},
		{Connection, io.ErrUnexpectedEOF},
		{Dial, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		{Dial, fmt.Errorf("store: %w", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"})},
		{Dial, fmt.Errorf("store: %w", &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})},
	} {
		if got := ClassOf(test.err); got != test.want {
			t.Errorf("%v: got %v, want %v", test.err, got, test.want)
		}
	}
}
