package rategin_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/rategen/rategen/internal/testkit/wire"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/rategin"
	"github.com/rategen/rategen/runtime/ratehttp"
)

func init() { gin.SetMode(gin.TestMode) }

// TestOnTheWire hands errors to gin in each way that it has for them, with other middleware on either
// side of the adapter.
func TestOnTheWire(t *testing.T) {
	for name, fail := range map[string]func(*gin.Context, error){
		"c.Error":                 func(c *gin.Context, err error) { _ = c.Error(err) },
		"c.Error with a status":   func(c *gin.Context, err error) { _ = c.Error(err); c.Status(500) },
		"c.AbortWithError":        func(c *gin.Context, err error) { _ = c.AbortWithError(500, err) },
		"rategin.Deny":            rategin.Deny,
		"rategin.Deny and c.JSON": func(c *gin.Context, err error) { rategin.Deny(c, err); c.JSON(500, gin.H{"error": "x"}) },
	} {
		t.Run(name, func(t *testing.T) {
			wire.CheckAdapter(t, "GET /hidden/:id", func(t *testing.T, s *wire.Service, outside bool, opts ...ratehttp.Option) string {
				return serve(t, s, outside, fail, opts...)
			})
		})
	}
}

// serve serves what package wire asks for, with the adapter outside of gin's logger, of its recovery, of a compressor and of a
// handler of errors, or inside. It fails by a function.
func serve(t *testing.T, service *wire.Service, outside bool, fail func(*gin.Context, error), opts ...ratehttp.Option) (url string) {
	engine := gin.New()
	all := []gin.HandlerFunc{
		gin.LoggerWithConfig(gin.LoggerConfig{Output: io.Discard, Formatter: func(p gin.LogFormatterParams) string {
			if !outside && len(opts) == 0 && p.StatusCode == 500 {
				t.Errorf("the log has status 500 for %s", p.Path)
			}
			return ""
		}}),
		gin.CustomRecovery(func(*gin.Context, any) { t.Error("a panic") }), cors, compress, handleErrors,
	}
	adapter := rategin.Middleware(opts...)
	if outside {
		engine.Use(append([]gin.HandlerFunc{adapter}, all...)...)
	} else {
		engine.Use(append(all, adapter)...)
	}
	for _, r := range service.Routes(func(code int) error { return status(code) }) {
		var limits []gin.HandlerFunc
		if r.Path == wire.Login {
			limits = append(limits, rategin.Limit(service.Login()))
		}
		engine.Handle(r.Method, r.Path, append(limits, func(c *gin.Context) {
			err := r.Do(wire.Call{
				Context: c.Request.Context(), Param: wire.First(c.Param), Query: wire.First(c.Query), Set: c.Header,
				Send: func(text string) error { c.String(200, text); return nil },
			})
			code, known := err.(status)
			switch {
			case known:
				c.AbortWithStatusJSON(int(code), gin.H{"error": "internal"})
			case err != nil && r.Path == "/lost/:id":
				_ = c.Error(err)
			case err != nil:
				fail(c, err)
			}
		})...)
	}
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	return server.URL
}

// A status is an error that a handler answers by itself.
type status int

func (status) Error() string { return "internal" }

// handleErrors is an error handler as most programs have it.
func handleErrors(c *gin.Context) {
	c.Next()
	if len(c.Errors) > 0 && c.Writer.Status() == 200 {
		c.JSON(500, gin.H{"error": "internal"})
	}
}

// compress is what middleware does that compresses.
func compress(c *gin.Context) {
	if c.GetHeader("Accept-Encoding") != "gzip" {
		return
	}
	outer, zipped := c.Writer, gzip.NewWriter(c.Writer)
	c.Header("Content-Encoding", "gzip")
	c.Writer = gzipWriter{outer, zipped}
	c.Next()
	c.Writer = outer
	if outer.Written() || outer.Status() != 200 {
		_ = zipped.Close()
		return
	}
	c.Writer.Header().Del("Content-Encoding")
}

type gzipWriter struct {
	gin.ResponseWriter
	zipped *gzip.Writer
}

func (w gzipWriter) Write(p []byte) (int, error)       { return w.zipped.Write(p) }
func (w gzipWriter) WriteString(s string) (int, error) { return w.zipped.Write([]byte(s)) }

// cors is what middleware for CORS does.
func cors(c *gin.Context) {
	c.Header("Access-Control-Allow-Origin", wire.Origin)
	c.Header("Access-Control-Expose-Headers", "RateLimit, RateLimit-Policy, Retry-After")
	if c.Request.Method == http.MethodOptions {
		c.AbortWithStatus(http.StatusNoContent)
	}
}

// TestWriter wants what handlers and middleware of gin see and do to be as without the
// adapter.
func TestWriter(t *testing.T) {
	for name, test := range map[string]struct {
		handler gin.HandlerFunc
		status  int
		body    string
	}{
		"nothing":                    {func(c *gin.Context) {}, 200, ""},
		"a status":                   {func(c *gin.Context) { c.Status(201) }, 201, ""},
		"a later status":             {func(c *gin.Context) { c.Status(201); c.Status(202) }, 202, ""},
		"a status that came to late": {func(c *gin.Context) { c.AbortWithStatus(403); c.Status(202) }, 403, ""},
		"a body":                     {func(c *gin.Context) { c.String(418, "tea"); c.Status(202) }, 418, "tea"},
		"a body in parts":            {func(c *gin.Context) { c.Writer.WriteString("a"); c.Writer.Flush(); c.Writer.Write([]byte("b")) }, 200, "ab"},
		"a panic":                    {func(c *gin.Context) { c.Status(201); panic("x") }, 500, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var seen, size [2]int
			for i, adapter := range []gin.HandlerFunc{func(*gin.Context) {}, rategin.Middleware()} {
				engine := gin.New()
				engine.Use(func(c *gin.Context) {
					defer func() { seen[i], size[i] = c.Writer.Status(), c.Writer.Size() }()
					c.Next()
				}, gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, _ any) { c.AbortWithStatus(500) }), adapter)
				engine.GET("/", test.handler)
				w := httptest.NewRecorder()
				engine.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
				if w.Code != test.status || w.Body.String() != test.body {
					t.Errorf("adapter %d: status %d, body %q", i, w.Code, w.Body)
				}
			}
			if seen[0] != seen[1] || size[0] != size[1] {
				t.Errorf("a middleware outside has seen the statuses %v and the sizes %v", seen, size)
			}
		})
	}
}

// TestHijack wants a handler to get the connection.
func TestHijack(t *testing.T) {
	engine := gin.New()
	engine.Use(rategin.Middleware())
	engine.GET("/", func(c *gin.Context) {
		conn, _, err := c.Writer.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte("HTTP/1.1 299 Mine\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
	})
	server := httptest.NewServer(engine)
	defer server.Close()
	answer, err := http.Get(server.URL)
	if err != nil || answer.StatusCode != 299 {
		t.Fatalf("%v, %v", answer, err)
	}
	answer.Body.Close()
}

// TestDenyEnds wants no handler to run after a refusal.
func TestDenyEnds(t *testing.T) {
	engine := gin.New()
	engine.Use(rategin.Middleware(), func(c *gin.Context) { rategin.Deny(c, &runtime.LimitedError{Rule: "x"}) })
	engine.GET("/", func(*gin.Context) { t.Error("the handler runs") })
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusTooManyRequests {
		t.Errorf("status %d", w.Code)
	}
}

func TestUnfit(t *testing.T) {
	wire.CheckUnfit(t, func(l ratehttp.RequestLimit) { rategin.Limit(l) })
}
