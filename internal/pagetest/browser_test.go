package pagetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is for how long the test waits for anything. A machine that is busy with
// other tests is slow.
const patience = 2 * time.Minute

// A browser is a headless Chromium with one page, and what it complained about.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// noteViolations has the page itself tell of what its policy forbids.
const noteViolations = `document.addEventListener("securitypolicyviolation", (e) => console.error("policy: " + e.violatedDirective + " " + e.blockedURI));`

func openBrowser(t *testing.T) *browser {
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("RATEGEN_REQUIRE_CHROMIUM") == "1" {
			t.Fatal("chromium is not installed, and RATEGEN_REQUIRE_CHROMIUM=1: apt-get install chromium")
		}
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("font-render-hinting", "none"), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	b.do("open the browser", log.Enable(), runtime.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(noteViolations).Do(ctx)
		return err
	}))
	return b
}

// listen notes what the browser complains about.
func (b *browser) listen(event any) {
	var text string
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			for _, arg := range e.Args {
				text += string(arg.Value) + " " + arg.Description
			}
		}
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Error()
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.complaints = append(b.complaints, text)
	}
}

// complained returns what the browser has complained about since the last time.
func (b *browser) complained() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.complaints
	b.complaints = nil
	return was
}

// do carries actions out, each within patience.
func (b *browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	for _, action := range actions {
		// The first run binds the browser to the context that it is given.
		ended := make(chan error, 1)
		go func() { ended <- chromedp.Run(b.ctx, action) }()
		select {
		case err := <-ended:
			if err != nil {
				b.t.Fatalf("%s: %v; the browser complained: %q", what, err, b.complained())
			}
		case <-time.After(patience):
			b.t.Fatalf("%s: nothing after %v; the browser complained: %q", what, patience, b.complained())
		}
	}
}

// wait waits until an expression is true in the page.
func (b *browser) wait(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	var got bool
	err := chromedp.Run(ctx, chromedp.Poll(expression, &got, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(patience)))
	if err != nil || !got {
		var body string
		_ = chromedp.Run(b.ctx, chromedp.Evaluate("document.body.innerText", &body))
		b.t.Fatalf("%s: %v; the page says:\n%s\nthe browser complained: %q", what, err, body, b.complained())
	}
}

// eval evaluates an expression in the page.
func eval[T any](b *browser, expression string) (value T) {
	b.t.Helper()
	b.do(expression, chromedp.Evaluate(expression, &value))
	return value
}

// text is the expression for what an element shows.
func text(selector string) string {
	return fmt.Sprintf("document.querySelector(%q).innerText", selector)
}

// button is the XPath of a button by its text.
func button(text string) string {
	return fmt.Sprintf(`//button[normalize-space()=%q]`, text)
}

func (b *browser) click(text string) {
	b.t.Helper()
	b.do("click "+text, chromedp.Click(button(text), chromedp.BySearch, chromedp.NodeVisible))
}

func (b *browser) clickRow(rule string) {
	b.t.Helper()
	b.do("open "+rule, chromedp.Click(fmt.Sprintf(`//td/button[@class="name"][normalize-space()=%q]`, rule), chromedp.BySearch, chromedp.NodeVisible))
}

// fill replaces what is in a field.
func (b *browser) fill(selector, value string) {
	b.t.Helper()
	b.do("fill "+selector, chromedp.WaitVisible(selector, chromedp.ByQuery),
		chromedp.Evaluate(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.select(); })()`, selector), nil),
		chromedp.KeyEvent(value))
}

func (b *browser) quiet(what string) {
	b.t.Helper()
	if said := b.complained(); len(said) > 0 {
		b.t.Errorf("%s: the browser complained:\n%s", what, strings.Join(said, "\n"))
	}
}
