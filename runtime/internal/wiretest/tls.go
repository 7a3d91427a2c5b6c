package wiretest

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/internal/testkit/redistest"
	"github.com/rategen/rategen/runtime/internal/decide"
	"github.com/rategen/rategen/runtime/rediswire"
)

// overTLS: a client that is set to TLS speaks it. Where one side alone does, or the server
// shows another certificate, the class of the error says that there is no connection. A
// server without TLS waits for the end of a command, so the client's time runs out.
func overTLS(t *testing.T, connect Connect) {
	for _, test := range []struct {
		name    string
		classes []decide.Class
		before  bool // the client speaks TLS, as the server does then
		after   bool // the server speaks TLS
	}{
		{"client without", []decide.Class{decide.ClassConnection, decide.ClassDial}, false, true},
		{"server without", []decide.Class{decide.ClassTimeout, decide.ClassDial}, true, false},
		{"another certificate", []decide.Class{decide.ClassDial}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			options := &redis.UniversalOptions{Addrs: []string{server.Addr}}
			if test.before {
				options.TLSConfig = server.ServeTLS(t)
			}
			client, end := connect(t, options)
			defer end()
			executed(t, client, count("k"))
			server.Restart()
			if test.after {
				server.ServeTLS(t)
			}
			for i := range 5 {
				s := count("k")
				client.Execute(within(t, patience), []*rediswire.Script{s})
				class := decide.ClassOf(s.Err)
				if i == 0 && class == decide.ClassConnection { // which has ended meanwhile
					continue
				}
				if s.Err == nil || !slices.Contains(test.classes, class) {
					t.Fatalf("got %v (%v), want one of %v", class, s.Err, test.classes)
				}
			}
		})
	}
}
