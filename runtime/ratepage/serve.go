package ratepage

import (
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/rategen/rategen/runtime"
)

//go:embed assets
var assets embed.FS

// contentTypes are by the ends of files' names. Those of the system may be wrong.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "+
		"frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
}

func (p *Page) newRoutes() http.Handler {
	read := map[string]http.HandlerFunc{
		"api/rules":     p.serveRules,
		"api/listing":   p.serveListing,
		"api/state":     p.serveState,
		"api/stream":    p.serveStream,
		"api/keys":      p.serveKey,
		"api/overrides": p.serveOverrides,
		"api/processes": p.serveProcesses,
		"api/refused":   p.serveRefused,
	}
	files, err := assets.ReadDir("assets")
	if err != nil {
		panic("ratepage: " + err.Error()) // the files are part of the program
	}
	for _, file := range files {
		name := file.Name()
		read[name] = serveFile(name)
	}
	read[""] = read["index.html"]
	delete(read, "index.html")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		serve, methods := read[name], []string{"GET", "HEAD"}
		switch name {
		case "api/actions":
			serve, methods = p.actions.serve, []string{"POST"}
		case "api/stream":
			methods = methods[:1]
		}
		switch {
		case serve == nil:
			writeError(w, http.StatusNotFound, fmt.Sprintf("the page has no path %.200q. It does not see the prefix that it is mounted under: "+
				`mux.Handle("/limits/", http.StripPrefix("/limits", page))`, r.URL.Path))
		case !slices.Contains(methods, r.Method):
			allowed := strings.Join(methods, ", ")
			w.Header().Set("Allow", allowed)
			writeError(w, http.StatusMethodNotAllowed, fmt.Sprintf("%.200q is for %s, not for %.20s", r.URL.Path, allowed, r.Method))
		case r.URL.Path == "" && !atSlash(r):
			toSlash(w, r)
		default:
			serve(w, r)
		}
	})
}

// atSlash reports whether the browser's address ends with a slash, so that
// relative addresses lead into the page.
func atSlash(r *http.Request) bool {
	asked, err := url.ParseRequestURI(r.RequestURI)
	return err != nil || strings.HasSuffix(asked.Path, "/")
}

// toSlash sends the browser to the same address with a slash.
func toSlash(w http.ResponseWriter, r *http.Request) {
	asked, _ := url.ParseRequestURI(r.RequestURI)
	w.Header().Set("Location", "./"+path.Base(asked.EscapedPath())+"/")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

func serveFile(name string) http.HandlerFunc {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("ratepage: " + err.Error())
	}
	contentType := contentTypes[path.Ext(name)]
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(data)
	}
}

func writeJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(data) // fails if the client has gone
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, encode(struct {
		Error string `json:"error"`
	}{text}))
}

// A failure is an error with the status that answers it.
type failure struct {
	status int
	text   string
}

func (f failure) Error() string { return f.text }

func unknownRule(name string) error {
	return failure{http.StatusNotFound, fmt.Sprintf("no rule has the name %.200q: see api/rules", name)}
}

func badRequest(format string, args ...any) error {
	return failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// writeFailure answers with an error: one of the request, or that Redis is away.
func writeFailure(w http.ResponseWriter, err error) {
	var known failure
	switch {
	case errors.As(err, &known):
		writeError(w, known.status, known.text)
	case errors.Is(err, runtime.ErrInvalidKey), errors.Is(err, runtime.ErrInvalidLimit):
		writeError(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, runtime.ErrUnavailable): // which says no reason
		writeError(w, http.StatusServiceUnavailable, fmt.Sprintf("%v: %v", runtime.ErrUnavailable, runtime.ClassOf(err)))
	default: // the store's, or the editor's
		writeError(w, http.StatusServiceUnavailable, err.Error())
	}
}

// WithHosts names the hosts, without ports, by which browsers know the page. A request for
// another name is answered with 421, so that nobody can have a name of theirs stand for the
// server's address and then read the page, or act (DNS rebinding). Addresses are always served:
// nobody can have these stand for others. It panics if a host has a port or a scheme.
func WithHosts(hosts ...string) Option {
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, ":/ ") {
			panic(fmt.Sprintf("ratepage: host %q: write a name without scheme and port, as in limits.example.com", host))
		}
	}
	return func(p *Page) {
		p.hosts = slices.Clone(hosts)
	}
}

// serves reports whether a request is for a host of the page.
func (p *Page) serves(r *http.Request) bool {
	if p.hosts == nil {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(host, ".")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.ContainsFunc(p.hosts, func(known string) bool { return strings.EqualFold(known, host) })
}
