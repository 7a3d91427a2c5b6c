package private

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime/rediswire"
)

// fixed are errors whose texts are always the same.
var fixed = []error{
	context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded,
	io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, fs.ErrNotExist, fs.ErrPermission,
	rediswire.ErrClosed, rediswire.ErrNotSent, redis.Nil, redis.ErrClosed, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
}

func harmless(err error) bool {
	return slices.ContainsFunc(fixed, func(known error) bool { return err == known })
}

// textOf returns the harmless part of an error's text.
func textOf(err error) string {
	switch e := err.(type) {
	case *Error:
		return e.text
	case rediswire.ReplyError:
		return textOfReply(e.Error())
	case *net.OpError:
		return e.Op + ": " + textOf(e.Err)
	case *net.DNSError:
		if e.IsNotFound {
			return "lookup: no such host"
		}
		if e.IsTimeout {
			return "lookup: i/o timeout"
		}
		return "lookup failed"
	case *os.SyscallError:
		return e.Syscall + ": " + textOf(e.Err)
	case *fs.PathError:
		return e.Op + " " + e.Path + ": " + textOf(e.Err)
	case syscall.Errno, tls.AlertError, tls.RecordHeaderError:
		return err.Error()
	case x509.UnknownAuthorityError: // which may quote a certificate's name
		return x509.UnknownAuthorityError{}.Error()
	case x509.HostnameError:
		return "x509: the certificate is for another server name"
	case x509.CertificateInvalidError:
		return "x509: the certificate is not valid, it has expired perhaps"
	case interface{ Unwrap() []error }:
		return textOfAll(e.Unwrap())
	}
	if harmless(err) {
		return err.Error()
	}
	if cause := errors.Unwrap(err); cause != nil {
		return textOf(cause)
	}
	if e, ok := err.(interface{ Timeout() bool }); ok && e.Timeout() {
		return os.ErrDeadlineExceeded.Error()
	}
	return fmt.Sprintf("an error of type %T, whose text may be private", err)
}

// textOfAll returns the harmless parts of the texts of several errors, each part once.
func textOfAll(errs []error) string {
	var texts []string
	for _, err := range errs {
		if err == nil {
			continue
		}
		if text := textOf(err); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// codes are the first words of errors whose texts are Redis's own and quote nothing.
// MOVED, ASK and REDIRECT name a server.
var codes = []string{
	"OOM", "BUSY", "LOADING", "READONLY", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE",
	"NOSCRIPT", "PERIOD", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "CROSSSLOT", "EXECABORT",
}

// sentences begin errors about scripts and clients that quote no more than the name of
// a command.
var sentences = []string{
	"Error running script", "Error compiling script", "user_script", "@user_script", "ACL failure in script",
	"The user executing the script can't", "Unknown Redis command called from script", "unknown command", "Unknown command",
	"max number of clients", "max client", "This Redis command is not allowed from script", "unauthenticated",
}

// textOfReply returns the harmless part of an error reply of Redis, or of a proxy before it.
func textOfReply(text string) string {
	// A server quotes the arguments of a command that it does not know.
	for _, quote := range []string{", with args", " with args"} {
		if before, _, found := strings.Cut(text, quote); found && strings.Contains(strings.ToLower(before), "unknown command") {
			text = before
		}
	}
	said := strings.TrimPrefix(text, "ERR ")
	begins := func(prefix string) bool { return strings.HasPrefix(said, prefix) }
	code, _, _ := strings.Cut(said, " ")
	if slices.Contains(codes, code) || slices.ContainsFunc(sentences, begins) || said == "redis: nil" {
		return text
	}
	if code == strings.ToUpper(code) && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && code != "" {
		return code
	}
	return "an error that the server replied"
}

// TextOfPanic returns the harmless part of the text of a panic's value: the text of a
// [runtime.Error], or else the value's type. The stack shows where the panic happened.
func TextOfPanic(value any) string {
	switch value := value.(type) {
	case runtime.Error:
		return value.Error()
	case error:
		return textOf(value)
	}
	return fmt.Sprintf("a value of type %T, which may be private", value)
}
