package pagetest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rategen/rategen/internal/testkit/effort"
	"github.com/rategen/rategen/internal/testkit/limittest"
	"github.com/rategen/rategen/runtime"
	"github.com/rategen/rategen/runtime/override"
	"github.com/rategen/rategen/runtime/rule"
)

// withHands opens a browser for what operators do one after the other, in a full run: a
// quick one has TestPage.
func withHands(t *testing.T) *browser {
	if !effort.Full() {
		t.Skip("in a full run only")
	}
	return openBrowser(t)
}

func (b *browser) visit(url string, rows int) {
	b.t.Helper()
	b.open(url, 1280, 900)
	b.wait("the stream", `["live", "doubt"].includes(document.getElementById("link").dataset.state)`)
	b.wait("all rules", fmt.Sprintf(`document.querySelectorAll("#rule-rows > tr").length === %d`, rows))
}

// TestAddress sends what one viewer sees to another by the address, and finds its way by
// the keyboard.
func TestAddress(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	b.visit(p.url, len(rules))
	eval[any](b, `document.activeElement.blur()`)
	b.key("/", "/", 191)
	b.wait("the filter", `document.activeElement.id === "filter" && document.activeElement.value === ""`)
	b.fill("#filter", "Create")
	b.click(create.Name)
	b.fill("#lookup-rule", create.Name)
	b.fill("#lookup-key", "acme:#ann&x=1")
	b.enter()
	b.wait("the key", text("#lookup-result")+`.includes("acme:#ann&x=1")`)
	address := eval[string](b, "location.href")

	b.open("about:blank", 1280, 900)
	b.open(address, 1280, 900)
	b.wait("the key again", text("#lookup-result")+`.includes("acme:#ann&x=1")`)
	b.wait("the filter again", `document.getElementById("filter").value === "Create"`)
	b.wait("the open rule", text("tr.detail")+`.includes("Declared")`)
	b.click(create.Name)
	b.wait("that it is closed", `!location.hash.includes("open=")`)
	eval[any](b, `location.hash = "key=Create"`)
	b.wait("the rules that have a text in their names", text("#lookup-result")+`.includes("Rules with Create") && `+text("#lookup-result")+`.includes("`+create.Name+`")`)
	long := strings.Repeat("x", 80)
	limittest.OK(t, p.client.HSet(t.Context(), "limits", `["`+create.Name+`","`+long+`y"]`, `{"max":3}`).Err())
	b.resize(390, 844)
	eval[any](b, `location.hash = "key=`+long+`"`)
	b.wait("keys that have a text in them", text("#lookup-result")+`.includes("Other keys with xxx")`)
	if eval[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth") {
		t.Error("a long text makes the page wider than the window")
	}
	b.resize(1280, 900)
	eval[any](b, `location.hash = "show=changed"`)
	b.wait("rules that are changed", `document.getElementById("show").value === "changed" && document.getElementById("filter").value === ""`)

	eval[any](b, `document.activeElement.blur()`)
	b.key("?", "?", 191)
	b.wait("the help", `document.getElementById("help").open`)
	b.key("/", "/", 191)
	b.wait("that the help keeps the keys", `document.activeElement.id !== "filter"`)
	b.click("Close")
	b.wait("that the help is gone", `!document.getElementById("help").open`)
	b.quiet("all of it")
}

// TestQuota blocks, unblocks and undoes: a customer's own quota is there all the time,
// and an edit keeps the end that it does not name.
func TestQuota(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	const field = `["orders.Service.Create","acme"]`
	says := func(want string) {
		t.Helper()
		var got string
		for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
			if got = p.client.HGet(t.Context(), "limits", field).Val(); strings.HasPrefix(got, want) {
				return
			}
		}
		t.Errorf("the hash says %s, want %s", got, want)
	}
	editor := override.NewEditor(p.client, "limits")
	if _, err := editor.Edit(t.Context(), override.Edit{Target: override.Target{Rule: create.Name, Pattern: "acme", Keys: true}, Set: rule.KeyOverride{Max: new(int64(1000))}, Who: "bob", Why: "ticket 7"}); err != nil {
		t.Fatal(err)
	}
	b.visit(p.url, len(rules))
	b.wait("the override of the key", text("#entries")+`.includes('{"max":1000}')`)
	b.wait("who has set it, and why", text("#changes")+`.includes("by bob: ticket 7")`)
	b.fill("#lookup-rule", create.Name)
	b.fill("#lookup-key", "acme")
	b.enter()
	b.wait("the quota", text("#lookup-result")+`.includes("0 of 1,000 in")`)
	b.fill("#lookup-result input[name=for]", "1h")
	b.click("Block")
	b.confirm("Refuse all calls of acme")
	says(`{"block":true,"block_until":"`)
	b.wait("the block", text("#lookup-result")+`.includes("Never admitted")`)
	b.wait("its end", text("#entries")+`.includes("block until")`)
	b.click("Unblock")
	says(`{"max":1000}`)
	b.wait("the quota again", text("#lookup-result")+`.includes("0 of 1,000 in")`)
	b.quiet("so far")
	b.click("Unblock")
	b.wait("that there is no block", text("#notice")+`.includes("nothing to take back")`)
	b.complained() // of the 409
	says(`{"max":1000}`)
	b.click("Allow")
	says(`{"allow":true,"max":1000}`)
	b.click("Remove allowance")
	says(`{"max":1000}`)
	b.wait("five changes", `document.querySelectorAll("#changes > li").length === 5`)
	eval[any](b, `void document.querySelector("#changes button").click()`) // the last one
	says(`{"allow":true,"max":1000}`)
	b.wait("the undo in the history", text("#changes")+`.includes("undo of 5, by ada")`)

	b.fill("#lookup-result input[name=max]", "5000")
	b.fill("#lookup-result input[name=for]", "2h")
	b.fill("#lookup-result input[name=why]", "ticket 9")
	b.click("Set max")
	b.wait("the raised max, and why", text("#changes")+`.includes("by ada: ticket 9")`)
	says(`{"allow":true,"max":5000,"max_then":1000,"max_until":"`)
	b.click("Remove override")
	says("")

	// More for an hour, and then another number: the end stays.
	if _, err := editor.Edit(t.Context(), override.Edit{Target: override.Target{Rule: create.Name}, Set: rule.KeyOverride{Max: new(int64(20))}, Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	b.wait("the limit", text("#rules")+`.includes("20 per 1h")`)
	b.wait("the override", text("#entries")+`.includes("until")`) // which the details take the end from
	b.click(create.Name)
	b.wait("its end", text("tr.detail")+`.includes("until")`)
	b.fill("tr.detail input[name=max]", "12")
	b.enter()
	b.wait("the new limit", text("#rules")+`.includes("12 per 1h")`)
	if is := p.client.HGet(t.Context(), "limits", create.Name).Val(); !strings.HasPrefix(is, `{"max":12,"until":"`) {
		t.Errorf("the hash says %s", is)
	}
	b.fill("tr.detail input[name=max]", "13")
	b.fill("tr.detail input[name=for]", "ever")
	b.enter()
	b.wait("the last limit", text("#rules")+`.includes("13 per 1h")`)
	if is := p.client.HGet(t.Context(), "limits", create.Name).Val(); is != `{"max":13}` {
		t.Errorf("the hash says %s", is)
	}
	b.quiet("all of it")
}

// TestTwoLimiters shows the rules of two limiters of one service on one page, while
// calls are made: somebody who types keeps the focus, also over a lost connection.
func TestTwoLimiters(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	second := runtime.New(runtime.NewMemoryStore(), runtime.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))), runtime.WithObserver(p.page.Observer()))
	second.Register(rules...)
	b.visit(p.url, 2*len(rules))
	p.call(t)
	eval[any](b, `window.built = 0; new MutationObserver((all) => { for (const m of all) window.built += m.addedNodes.length; }).observe(document.getElementById("rule-rows"), { childList: true })`)
	b.click(create.Name)
	b.fill("tr.detail input[name=max]", "4")
	eval[any](b, `window.typing = document.activeElement; void 0`)
	before := eval[int](b, "window.built")
	points := eval[float64](b, `Number(document.querySelector("[data-column=admitted] .total").innerText.replace(/\D/g, ""))`)
	typing := func(when string) {
		t.Helper()
		if !eval[bool](b, `document.activeElement === window.typing && window.typing.isConnected && window.typing.value === "4"`) {
			t.Errorf("%s the text or the focus is lost", when)
		}
	}
	b.wait("some seconds of calls", fmt.Sprintf(`Number(document.querySelector("[data-column=admitted] .total").innerText.replace(/\D/g, "")) > %v + 100`, points))
	typing("after some seconds")
	if n := eval[int](b, "window.built") - before; n != 0 {
		t.Errorf("%d rows were inserted anew while nothing changed", n)
	}
	p.server.CloseClientConnections()
	b.wait("a lost connection", `document.getElementById("link").dataset.state === "lost"`)
	b.wait("another", `["live", "doubt"].includes(document.getElementById("link").dataset.state)`)
	typing("after a reconnect")
	p.limiter.Register(&runtime.Rule{Name: "a.new.Rule", Max: 1, Window: time.Hour})
	b.wait("a new rule", fmt.Sprintf(`document.querySelectorAll("#rule-rows > tr:not(.detail)").length === %d`, 2*len(rules)+1))
	typing("after another rule has come")
	_ = second.Close()
	b.wait("one limiter", fmt.Sprintf(`document.querySelectorAll("#rule-rows > tr:not(.detail)").length === %d`, len(rules)+1))
	typing("after a limiter was closed")
	b.complained() // of the lost connection
}

// TestLoadBalancer reaches the pages of two processes by turns, without an affinity.
func TestLoadBalancer(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p, q := start(t), start(t)
	q.limiter.Register(&runtime.Rule{Name: "another", Max: 1, Window: time.Hour})
	var turns [2]*httputil.ReverseProxy
	for i, of := range []*program{p, q} {
		to, err := url.Parse(strings.TrimSuffix(of.url, "/ops/limits"))
		limittest.OK(t, err)
		turns[i] = httputil.NewSingleHostReverseProxy(to)
		turns[i].FlushInterval = -1
	}
	var turn, requests atomic.Int64
	balancer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "api/") {
			requests.Add(1)
		}
		turns[turn.Add(1)%2].ServeHTTP(w, r)
	}))
	t.Cleanup(balancer.Close)
	t.Cleanup(p.page.Close)
	t.Cleanup(q.page.Close)
	for range 2 { // both processes
		b.open(balancer.URL+"/ops/limits/", 1280, 900)
		b.wait("the stream", `["live", "doubt"].includes(document.getElementById("link").dataset.state)`)
		b.wait("all rules", fmt.Sprintf(`document.querySelectorAll("#rule-rows > tr").length >= %d`, len(rules)))
		b.wait("which process that is", text("#summary")+`.includes("those of one process on")`)
		requests.Store(0)
		if r, err := p.limiter.Peek(t.Context(), mail.Limit(nil)); err != nil || !r.Allowed {
			t.Error(err)
		}
		b.wait("some seconds", `(window.since ??= Date.now()) + 4000 < Date.now()`)
		if n := requests.Load(); n > 3 {
			t.Errorf("%d requests in 4 s", n)
		}
		turn.Add(1)
	}
	b.quiet("both processes")
}

// TestSums wants the rates of a rule in all processes beside those of the one that serves the page.
func TestSums(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	other := runtime.New(runtime.NewRedisStore(p.client, runtime.WithTimeout(5*time.Second)), runtime.WithLogger(slog.New(slog.DiscardHandler)))
	t.Cleanup(func() { _ = other.Close() })
	other.Register(rules...)
	ctx, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	t.Cleanup(func() { stop(); calls.Wait() })
	calls.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			_, _ = other.Take(ctx, get.Limit(nil))
		}
	})
	b.visit(p.url, len(rules))
	row := fmt.Sprintf(`[...document.querySelectorAll("#rule-rows > tr")].find((e) => e.innerText.includes(%q))`, get.Name)
	b.wait("the rate of the other process", `/^all [1-9]/.test(`+row+`.querySelector("td.number small").innerText) && `+row+`.querySelector("td.number span").innerText === "0"`)
	b.wait("what all decide", text("[data-column=admitted]")+`.includes("all 2 processes")`)
	b.quiet("the sums")
}

// TestHidden wants a page that is hidden to hold no connection, and to be live when it is seen again.
func TestHidden(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	b.visit(p.url, len(rules))
	viewers := func(n int) string {
		return fmt.Sprintf(`(fetch("api/state").then((r) => r.json()).then((s) => { window.viewers = s.viewers }), window.viewers === %d)`, n)
	}
	b.wait("one viewer", viewers(1))
	for _, state := range []string{"hidden", "visible", "hidden", "visible"} {
		b.wait("the page is "+state, fmt.Sprintf(`(Object.defineProperty(document, "visibilityState", { value: %q, configurable: true }), document.dispatchEvent(new Event("visibilitychange")))`, state))
		if state == "hidden" {
			b.wait("no viewer", viewers(0))
			b.wait("that is said", text("#link")+`.includes("hidden")`)
			continue
		}
		b.wait("one viewer again", viewers(1))
		b.wait("the stream", `["live", "doubt"].includes(document.getElementById("link").dataset.state)`)
	}
	b.quiet("a hidden page")
}

// TestUndecided has calls wait, which the page tells while they do, and then Redis die:
// rules say how many of their calls nobody decides, and a
// filter finds them.
func TestUndecided(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	b.visit(p.url, len(rules))
	p.call(t)
	b.wait("rates", `[...document.querySelectorAll("#rule-rows td[data-label='admitted /s']")].some((e) => Number(e.innerText) > 0)`)
	queue := &runtime.Rule{Name: "jobs.Queue.Push", Max: 1, Window: time.Hour, Algorithm: runtime.LeakyBucket, Wait: 24 * time.Hour}
	p.limiter.Register(queue)
	waiting, leave := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() { _, _ = p.limiter.Take(waiting, queue.Limit(nil)) })
	}
	b.wait("calls that wait", text("#rules")+`.includes("2 calls wait")`)
	leave()
	calls.Wait()
	b.wait("that they wait no longer", `!`+text("#rules")+`.includes("calls wait")`)
	eval[any](b, `document.getElementById("show").value = "undecided"; void document.getElementById("show").dispatchEvent(new Event("change"))`)
	b.wait("none while Redis answers", text("#rules-foot")+` === "No rule fits the filter."`)
	b.quiet("while Redis answers")
	b.wait("that it answers", text("#redis-summary")+` === "Answering" && document.getElementById("undecided").hidden && /^Live(: 1 kind of finding)?$/.test(`+text("#link-text")+`)`)
	p.redis.Kill()
	b.wait("what becomes of calls, on top", `/The store does not decide: .* go on uncounted \(.*, fail=open\)/.test(`+text("#undecided")+`)`)
	b.wait("that it is not simply live", `/^Live: (\d+ % of calls are undecided|no call is decided)(;|$)/.test(`+text("#link-text")+`) && `+text("#redis-summary")+` !== "Answering"`)
	for _, rule := range []*runtime.Rule{get, mail} {
		b.wait("undecided calls of "+rule.Name, fmt.Sprintf(`[...document.querySelectorAll("#rule-rows > tr")].some((e) => e.innerText.includes(%q) && Number(e.querySelector("td[data-label='undecided /s']").innerText) > 0 && e.querySelector(".spark .u").getAttribute("d"))`, rule.Name))
	}
}

// TestHeldBack has a peer hold calls back, which the page says, with the reason and the end
// of it, and an operator release them.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	peer := &runtime.Rule{Name: "payments" + strings.Repeat(".Customers", 12), Source: "api.example.com/", Max: 100, Window: time.Minute, Hold: true, Wait: time.Hour}
	p.limiter.Register(peer)
	b.visit(p.url, len(rules)+1)
	limit := peer.Limit(runtime.NewKey().AddString("secret"))
	limittest.OK(t, p.limiter.Hold(t.Context(), limit, 10*time.Minute))
	admitted := make(chan error, 1)
	go func() {
		_, err := p.limiter.Take(t.Context(), limit)
		admitted <- err
	}()
	b.wait("who is held back", text("#rules")+`.match(/held back for (10m|9m \d+s), 1 call waits/) !== null`)
	b.fill("#lookup-rule", peer.Name)
	b.fill("#lookup-key", "secret")
	b.enter()
	b.wait("why and until when", text("#lookup-result")+`.match(/Held back, since the peer has asked for it[^]*in (10m|9m \d+s), at \d/) !== null`)
	b.accessible(t, "with a key that is held back")
	for _, width := range []int{320, 390, 700, 1000, 1280} {
		b.resize(width, 900)
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > width {
			t.Errorf("in a window of %d pixels the page is %d wide", width, wide)
		}
	}
	b.click("Release")
	b.wait("a released key", text("#lookup-result")+`.includes("The next call is admitted")`)
	if err := <-admitted; err != nil {
		t.Errorf("the call that waited: %v", err)
	}
	b.wait("its row", "!"+text("#rules")+`.includes("held back")`)
	b.fill("#lookup-rule", create.Name)
	b.enter()
	b.wait("another rule", text("#lookup-result")+`.includes("0 of 5 in")`)
	if eval[bool](b, `Boolean(`+buttonOf("Release")+`)`) {
		t.Error("a rule that holds nothing back has a button for its release")
	}
	b.quiet("all of it")
}
