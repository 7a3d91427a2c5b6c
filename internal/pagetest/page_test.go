package pagetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/runtime"
)

// TestPage does what an operator does: looks, looks a key up, resets it, blocks it,
// and overrides a rule. In a quick run it looks once.
func TestPage(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	p := start(t)
	caller := runtime.NewKey().AddString("acme").AddString("ann")
	for range 6 {
		_, _ = p.limiter.Take(t.Context(), create.Limit(caller))
	}

	b.open(p.url, 1280, 900)
	b.wait("the stream", `["live", "doubt"].includes(document.getElementById("link").dataset.state)`)
	b.wait("all rules", fmt.Sprintf(`document.querySelectorAll("#rule-rows > tr").length === %d`, len(rules)))
	if title := eval[string](b, "document.title"); title != "Rate limits" {
		t.Errorf("title %q", title)
	}
	if !effort.Full() {
		b.quiet("a page that was opened")
		return
	}

	p.call(t)
	b.wait("rates that follow the calls", `Number(document.querySelector("[data-column=refused] .value span").innerText) > 0`)
	b.wait("a chart", `document.querySelector("[data-column=admitted] .line").getAttribute("d").includes("L")`)
	b.wait("a rule's chart", `[...document.querySelectorAll(".spark .d")].some((e) => e.getAttribute("d"))`)
	b.wait("the keys that are refused most", text("#refused")+`.includes("globex:robot")`)
	b.wait("the latency", `/\d/.test(`+text("#redis .pairs dd")+`)`)
	b.wait("the memory", text("#redis")+`.includes("64.0 MiB")`)
	b.wait("the factor", text("#rules")+`.includes("adaptive × 0.5")`)

	b.wait("a hostile key", text("#refused")+`.includes("onerror=")`)
	if eval[bool](b, `document.images.length > 0 || document.title === "owned"`) {
		t.Error("a caller's key became part of the page")
	}

	b.fill("#lookup-rule", "")
	b.fill("#lookup-key", "acme:ann")
	b.enter()
	b.wait("the rules that concern a key", text("#lookup-result")+`.includes("`+create.Name+`") && `+text("#lookup-result")+`.includes("other rules have counted nothing")`)
	b.fill("#lookup-rule", create.Name)
	b.fill("#lookup-key", "acme:ann")
	b.enter()
	b.wait("a refused key", text("#lookup-result")+`.includes("The next call is refused")`)
	b.click("Reset")
	b.click("Cancel")
	b.wait("that nothing was reset", text("#lookup-result")+`.includes("The next call is refused") && !document.getElementById("sure").open`)
	b.click("Reset")
	b.confirm("That cannot be undone")
	b.wait("a reset key", text("#lookup-result")+`.includes("0 of 5 in")`)
	if _, err := p.limiter.Take(t.Context(), create.Limit(caller)); err != nil {
		t.Errorf("after the reset: %v", err)
	}
	b.click("Block")
	b.confirm("Refuse all calls of acme:ann")
	b.wait("a blocked key", text("#overrides")+`.includes("1 key or pattern")`)
	b.wait("what is left of it", text("#lookup-result")+`.includes("Never admitted")`)
	if _, err := p.limiter.Take(t.Context(), create.Limit(caller)); err == nil {
		t.Error("a blocked key was admitted")
	}

	b.click(create.Name)
	b.fill(`tr.detail input[name=max]`, "50")
	b.fill(`tr.detail input[name=window]`, "1m30s")
	b.enter()
	b.wait("an overridden limit", text("#rules")+`.includes("50 per 1m 30s")`)
	b.wait("its history", text("#history")+`.includes("50 per 1m30s")`)
	b.wait("who did it", text("#changes")+`.includes('{"max":50,"window":"1m30s"}, by ada')`)
	b.wait("who has reset the key", text("#history")+`.includes("a key was reset, by ada")`)
	if hash := p.client.HGet(t.Context(), "limits", create.Name).Val(); !strings.Contains(hash, "50") {
		t.Errorf("the hash says %q", hash)
	}
	b.click(create.Name)

	b.press(mail.Name) // by the keyboard
	b.press("Shadow mode: refuse nobody")
	b.confirm("Refuse nobody by " + mail.Name)
	b.wait("its way back, which has the focus now", `document.activeElement.innerText === "Look up a key" && Boolean(`+buttonOf("Refuse calls again")+`)`)
	b.wait("a rule in the shadow", text("#overrides")+`.includes("`+mail.Name+`")`)
	b.click(mail.Name)
	b.wait("in which processes that is in force", text("#in-force")+`.includes("In force in 1 of the 1 processes")`)
	b.wait("the processes", text("#processes")+`.includes("overrides in force")`)
	for since, of := range map[string]string{"3h": " to ", "": "In the last 5m"} {
		eval[any](b, fmt.Sprintf(`void (() => { const s = document.getElementById("refused-since"); s.value = %q; s.dispatchEvent(new Event("change")); })()`, since))
		b.wait("who was refused, "+since, text("#refused")+`.includes("globex:robot") && `+text("#refused-span")+`.length > 0 && `+text("section:has(> #refused)")+`.includes(`+fmt.Sprintf("%q", of)+`)`)
	}
	b.quiet("all of it")
	for _, width := range []int{390, 1200} {
		b.resize(width, 844)
		if eval[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth") {
			t.Errorf("the page is wider than a window of %d pixels", width)
		}
	}
	b.resize(1280, 900)

	p.lock(true)
	b.click("Unblock")
	b.wait("a refusal", text("#notice")+`.includes("you may look, and not touch")`)
	if len(p.refused) != 1 || p.refused[0].Key != "acme:ann" {
		t.Errorf("refused: %+v", p.refused)
	}
	b.complained() // of the 403

	// The test would notice a violation.
	eval[any](b, `void document.body.append(Object.assign(document.createElement("script"), { textContent: "1" }))`)
	var said []string
	for start := time.Now(); !strings.Contains(strings.Join(said, "\n"), "policy: script-src"); said = append(said, b.complained()...) {
		if time.Since(start) > patience {
			t.Fatalf("an inline script was no violation; the browser complained: %q", said)
		}
		b.wait("the browser", "true")
	}
}
