package ratehttp_test

import (
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/internal/report"
	"github.com/rategen/rategen/runtime/ratehttp"
)

// The exchanges in the documentation are what a server writes.
func TestDocumentedExchange(t *testing.T) {
	documentedExchange(t, "../../docs/http.md", "shop.Orders.Place", 2, "too many orders, please wait", 0, 2)
	documentedExchange(t, "../../README.md", "employee.EmployeeService.GetByID", 5, "too fast, have a cup of tea", 5)
}

// documentedExchange wants some of the answers to calls of a limited method on a page.
func documentedExchange(t *testing.T, path, name string, most int64, message string, shown ...int) {
	page, err := os.ReadFile(path)
	limittest.OK(t, err)
	synctest.Test(t, func(t *testing.T) {
		rule := &runtime.Rule{Name: name, Window: 10 * time.Second, Max: most, Message: message}
		limiter := newLimiter()
		h := ratehttp.Middleware()(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := limiter.Take(r.Context(), rule.Limit(nil)); err != nil {
				ratehttp.Deny(w, r, err)
				return
			}
			w.WriteHeader(http.StatusCreated)
		}))
		for i := range most + 1 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", nil))
			var text strings.Builder
			text.WriteString("HTTP/1.1 " + w.Result().Status + "\n")
			limittest.OK(t, w.Header().Write(&text))
			want := strings.ReplaceAll(text.String(), "\r\n", "\n")
			if w.Body.Len() > 0 {
				want += "\n" + w.Body.String()
			}
			if want = "```http\n" + want + "```\n"; slices.Contains(shown, int(i)) && !strings.Contains(string(page), want) {
				t.Errorf("%s does not have:\n%s", path, want)
			}
		}
	})
}

// The quick start and the tutorial show the line of the log that their refusal writes.
func TestDocumentedLine(t *testing.T) {
	var written strings.Builder
	log.SetOutput(&written)
	defer log.SetOutput(os.Stderr)
	limiter := runtime.New(runtime.NewMemoryStore())
	_, err := limiter.Take(t.Context(), (&runtime.Rule{Name: "main.Greeter.Greet", Window: time.Hour}).Limit(nil).WithMax(0))
	if err == nil {
		t.Fatal("the call was admitted")
	}
	for _, path := range []string{"README.md", "README.zh-CN.md", "docs/tutorial.md"} {
		page, err := os.ReadFile("../../" + path)
		limittest.OK(t, err)
		_, shown, _ := strings.Cut(string(page), "`INFO ")
		if shown, _, _ = strings.Cut(shown, "…`"); shown == "" || !strings.Contains(written.String(), "INFO "+shown) {
			t.Errorf("%s shows %q of %q", path, shown, written.String())
		}
	}
}

// docs/troubleshooting.md says what to do about every code of a line in the log, once, and about no
// other.
func TestDocumentedCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	limittest.OK(t, err)
	_, tables, _ := strings.Cut(string(page), "\n## Log lines\n")
	tables, _, _ = strings.Cut(tables, "\n## A managed Redis\n")
	documented, written := map[string]int{}, map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\|").FindAllStringSubmatch(tables, -1) {
		for code := range strings.SplitSeq(row[1], ", ") {
			documented[strings.Trim(code, "`")]++
		}
	}
	for _, code := range report.Codes() {
		written[code]++
	}
	if diff := cmp.Diff(written, documented); diff != "" {
		t.Errorf("codes (-lines +docs/troubleshooting.md):\n%s", diff)
	}
}
