// Command service is an employee service behind rate limits. They are declared
// on its interface, in package employee.
//
//	go run ./examples/service               # tells three stories and ends
//	go run ./examples/service -http :8080   # serves GET /employees/{id}
//
// It brings its own Redis. With REDIS_ADDR=host:port it uses the server there.
// Start two services with the same address, and they share their limits. With -http it
// also serves a page of its limits at /limits/, on which nothing can be changed; that of
// examples/operated changes them.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rategen/rategen/examples/service/employee"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/ratepage"
)

func main() {
	var cfg config
	flag.StringVar(&cfg.http, "http", "", "serve on this `address` instead of telling the stories")
	flag.DurationVar(&cfg.timeout, "timeout", runtime.DefaultTimeout, "how `long` a call waits for Redis before it goes on without")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "service takes no arguments, only flags: %q\n", flag.Args())
		os.Exit(2)
	}
	cfg.redis = os.Getenv("REDIS_ADDR")

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

type config struct {
	redis   string // host:port, empty for one of our own
	http    string // where to listen, empty for the stories
	timeout time.Duration
	outage  time.Duration // the timeout while there is no Redis, 0 for timeout
}

func run(ctx context.Context, cfg config, out io.Writer) error {
	logs := &lineCounter{w: out}
	logger := slog.New(slog.NewTextHandler(logs, nil))
	quietGoRedis(logger)
	backend, err := openBackend(cfg.redis, cfg.timeout)
	if err != nil {
		return err
	}
	defer backend.close()
	fmt.Fprintln(out, "Redis:", backend.about)

	directory := employee.NewDirectory(
		employee.Employee{ID: "1001", Name: "Lin Yue", Email: "lin.yue@example.com"},
		employee.Employee{ID: "1002", Name: "Noor Haddad", Email: "noor.haddad@example.com"},
	)
	page := ratepage.New(ratepage.WithKeys(), ratepage.WithLogger(logger))
	limiter := runtime.New(runtime.NewRedisStore(backend.client, runtime.WithTimeout(cfg.timeout)),
		runtime.WithLogger(logger), runtime.WithObserver(page.Observer()))
	defer func() { _ = limiter.Close() }()
	svc := employee.NewRateLimitedEmployeeService(directory, limiter)
	if cfg.http != "" {
		return listenAndServe(ctx, cfg.http, withPage(newHandler(svc, logger), page), page.Close, out)
	}
	return (&story{
		out:       out,
		logs:      logs,
		logger:    logger,
		backend:   backend,
		outage:    cmp.Or(cfg.outage, cfg.timeout),
		directory: directory,
		limiter:   limiter,
		svc:       svc,
	}).tell(ctx)
}

// withPage serves a page at /limits/, and everything else by next.
func withPage(next http.Handler, page *ratepage.Page) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", page))
	mux.Handle("/", next)
	return mux
}
