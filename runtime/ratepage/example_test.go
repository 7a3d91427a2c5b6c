package ratepage_test

import (
	"errors"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/ratepage"
)

// A page on which nothing can be changed.
func Example() {
	page := ratepage.New()
	limiter := runtime.New(runtime.NewMemoryStore(), runtime.WithObserver(page.Observer()))
	_ = limiter // pass it to the constructors of your wrappers

	mux := http.NewServeMux()
	mux.Handle("/limits/", http.StripPrefix("/limits", page))
	server := &http.Server{Addr: "localhost:8080", Handler: mux}
	server.RegisterOnShutdown(page.Close) // or viewers would keep it from shutting down
}

// A page on which administrators may change limits, by a hash in Redis.
func ExampleWithActions() {
	client := redis.NewClient(runtime.TuneRedis(&redis.Options{Addr: "localhost:6379"}))
	page := ratepage.New(
		ratepage.WithPlainKeys(),
		ratepage.WithActions(func(r *http.Request, a ratepage.Action) (string, error) {
			name, ok := administrator(r)
			if !ok {
				return name, errors.New("only administrators change limits")
			}
			return name, nil
		}, override.NewEditor(client, "orders:limits")),
	)
	store := runtime.NewRedisStore(client, runtime.WithMemoryWatch(0, time.Minute))
	limiter := runtime.New(store,
		runtime.WithObserver(page.Observer()),
		runtime.WithOverrides(override.Redis(client, "orders:limits"), time.Second))
	_ = limiter
}

// administrator stands for the program's own authentication.
func administrator(r *http.Request) (name string, ok bool) {
	name, _, ok = r.BasicAuth()
	return name, ok && name == "ada"
}
