package pagetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A browser shows a page, and notes what it complains about: errors, warnings,
// exceptions, requests that fail, and violations of the page's policy.
type browser struct {
	*chromium

	noting     sync.Mutex
	complaints []string
}

// noteViolations has the page itself tell of what its policy forbids.
const noteViolations = `document.addEventListener("securitypolicyviolation", (e) => console.error("policy: " + e.violatedDirective + " " + e.blockedURI));`

func openBrowser(t *testing.T) *browser {
	b := new(browser)
	b.chromium = startChromium(t, b.note)
	call[any](b.chromium, "Page.addScriptToEvaluateOnNewDocument", args{"source": noteViolations})
	return b
}

// note notes an event that is a complaint.
func (b *browser) note(method string, params json.RawMessage) {
	var e struct {
		Entry            struct{ Level, Source, Text, URL string } // Log.entryAdded
		Type             string                                    // Runtime.consoleAPICalled
		Args             []struct{ Value, Description any }
		ExceptionDetails json.RawMessage // Runtime.exceptionThrown
	}
	_ = json.Unmarshal(params, &e)
	var text string
	switch {
	case method == "Log.entryAdded" && (e.Entry.Level == "error" || e.Entry.Level == "warning"):
		text = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case method == "Runtime.consoleAPICalled" && (e.Type == "error" || e.Type == "warning"):
		text = fmt.Sprint("console: ", e.Args)
	case method == "Runtime.exceptionThrown":
		text = "exception: " + string(e.ExceptionDetails)
	default:
		return
	}
	b.noting.Lock()
	defer b.noting.Unlock()
	b.complaints = append(b.complaints, text)
}

// complained returns what the browser has complained about since the last time.
func (b *browser) complained() []string {
	b.noting.Lock()
	defer b.noting.Unlock()
	was := b.complaints
	b.complaints = nil
	return was
}

// quiet fails the test if the browser has complained.
func (b *browser) quiet(what string) {
	b.t.Helper()
	if said := b.complained(); len(said) > 0 {
		b.t.Errorf("%s: the browser complained:\n%s", what, strings.Join(said, "\n"))
	}
}

// open loads a page in a window of a size.
func (b *browser) open(url string, width, height int) {
	b.t.Helper()
	b.resize(width, height)
	call[any](b.chromium, "Page.navigate", args{"url": url})
}

func (b *browser) resize(width, height int) {
	b.t.Helper()
	call[any](b.chromium, "Emulation.setDeviceMetricsOverride", args{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// evaluated is what the browser says of an expression.
type evaluated[T any] struct {
	Result           struct{ Value T }
	ExceptionDetails json.RawMessage
}

// eval evaluates an expression in the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	e := call[evaluated[T]](b.chromium, "Runtime.evaluate", args{"expression": expression, "returnByValue": true})
	if e.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, e.ExceptionDetails)
	}
	return e.Result.Value
}

// wait waits until an expression is true in the page. What it reads may not be
// there yet.
func (b *browser) wait(what, expression string) {
	b.t.Helper()
	var last error
	for start := time.Now(); time.Since(start) < patience; {
		e, err := try[evaluated[any]](b.chromium, "Runtime.evaluate", args{"expression": expression, "returnByValue": true})
		if err == nil && e.Result.Value == true {
			return
		}
		last = err
		select {
		case <-b.ended:
			b.t.Fatalf("%s: the browser has ended", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
	b.t.Fatalf("%s: not after %v, %v; the page says:\n%s\nthe browser complained: %q",
		what, patience, last, eval[string](b, "document.body.innerText"), b.complained())
}

// text is the expression for what an element shows.
func text(selector string) string {
	return fmt.Sprintf("document.querySelector(%q).innerText", selector)
}

// buttonOf is the expression for the visible button that says text.
func buttonOf(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("button")].find((e) => e.offsetParent && e.innerText.trim() === %q)`, text)
}

// click clicks the button that says text, when it is there.
func (b *browser) click(text string) {
	b.t.Helper()
	b.wait("a button "+text, fmt.Sprintf(`(() => { const e = %s; if (e) e.click(); return Boolean(e); })()`, buttonOf(text)))
}

// confirm answers yes to the question that says text.
func (b *browser) confirm(says string) {
	b.t.Helper()
	b.wait("the question", fmt.Sprintf(`document.getElementById("sure").open && %s.includes(%q)`, text("#sure"), says))
	b.click("Confirm")
}

// press moves the focus to the button that says text, and presses Enter.
func (b *browser) press(text string) {
	b.t.Helper()
	b.wait("a button "+text, fmt.Sprintf(`(() => { const e = %s; e?.focus(); return e !== undefined && document.activeElement === e; })()`, buttonOf(text)))
	b.enter()
}

// fill writes a text in place of what is in a field.
func (b *browser) fill(selector, text string) {
	b.t.Helper()
	b.wait("a field "+selector, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e?.focus(); e?.select(); return e !== null && document.activeElement === e; })()`, selector))
	call[any](b.chromium, "Input.insertText", args{"text": text})
}

// enter presses Enter.
func (b *browser) enter() {
	b.t.Helper()
	b.key("Enter", "\r", 13)
}

// key presses a key that writes a text, with its code on Windows.
func (b *browser) key(name, text string, code int) {
	b.t.Helper()
	call[any](b.chromium, "Input.dispatchKeyEvent", args{"type": "keyDown", "key": name, "text": text, "windowsVirtualKeyCode": code})
	call[any](b.chromium, "Input.dispatchKeyEvent", args{"type": "keyUp", "key": name, "windowsVirtualKeyCode": code})
}
