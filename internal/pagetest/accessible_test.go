package pagetest

import (
	"strings"
	"testing"
)

// flaws is an expression for what keeps people with a keyboard, a screen reader or weak
// eyes from using what the page shows now, a line each: by WCAG 2.2 AA, as far as a
// program can tell.
const flaws = `(() => {
  const flaws = [];
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden" && !e.closest(".sr");
  const name = (e) => "<" + e.tagName.toLowerCase() + (e.id ? " #" + e.id : "") + (e.className.baseVal === undefined && e.className ? " ." + e.className : "") + "> " + (e.innerText ?? "").slice(0, 40);
  const all = [...document.querySelectorAll("body *")];

  // Every control has a name, and what it is told by exists once.
  const ids = new Map();
  for (const e of all) if (e.id) ids.set(e.id, (ids.get(e.id) ?? 0) + 1);
  for (const [id, n] of ids) if (n > 1) flaws.push("the id " + id + " is there " + n + " times");
  for (const e of all) for (const attribute of ["for", "aria-labelledby", "list"]) {
    const id = e.getAttribute(attribute);
    if (id && !ids.has(id)) flaws.push(name(e) + ": " + attribute + " names " + id + ", which is not there");
  }
  for (const e of document.querySelectorAll("button, a[href], input, select")) {
    const says = e.getAttribute("aria-label") || e.innerText?.trim() && e.tagName !== "SELECT" && e.innerText.trim() || [...(e.labels ?? [])].map((l) => l.textContent).join("").trim();
    if (!says) flaws.push(name(e) + " has no name");
    if (e.tabIndex < 0) flaws.push(name(e) + " cannot be reached by the keyboard");
    if (e.tabIndex > 0) flaws.push(name(e) + " is reached out of order");
    if (shown(e)) {
      const box = e.getBoundingClientRect();
      if (e.tagName !== "A" && (box.width < 24 || box.height < 24) && getComputedStyle(e).display !== "inline") flaws.push(name(e) + " is smaller than 24 by 24: " + box.width + " by " + box.height);
    }
  }
  for (const e of all) if (e.onclick || e.getAttribute("role") === "button") flaws.push(name(e) + " acts, and is no button");
  for (const e of document.querySelectorAll("svg")) if (e.getAttribute("aria-hidden") !== "true" && !(e.getAttribute("role") === "img" && e.querySelector("title")?.textContent)) flaws.push(name(e) + ": a picture without a text");
  for (const e of document.querySelectorAll("th")) if (!e.scope) flaws.push(name(e) + " heads nothing");

  // Regions and headings lead through the page.
  if (!document.documentElement.lang || !document.title || document.querySelectorAll("main").length !== 1 || document.querySelectorAll("h1").length !== 1) flaws.push("no language, title, main part or first heading");
  let level = 1;
  for (const e of document.querySelectorAll("h1, h2, h3, h4")) {
    if (Number(e.tagName[1]) > level + 1) flaws.push(name(e) + " skips a level");
    level = Number(e.tagName[1]);
  }
  for (const e of document.querySelectorAll("section")) if (!e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby")) flaws.push(name(e) + " has no name");
  for (const e of document.querySelectorAll("ul > *, ol > *")) if (e.tagName !== "LI") flaws.push(name(e) + " is no item of a list");
  for (const e of document.querySelectorAll("dl > *")) if (e.tagName !== "DIV" || !e.querySelector("dt") || !e.querySelector("dd")) flaws.push(name(e) + " is no term with its description");

  // Texts differ from what is behind them.
  const rgba = (text) => {
    const numbers = text.match(/-?[\d.]+(e-?\d+)?/g).map(Number);
    return text.startsWith("color(") ? [...numbers.slice(0, 3).map((n) => n * 255), numbers[3] ?? 1] : [...numbers.slice(0, 3), numbers[3] ?? 1];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const behind = (e) => e === null ? [255, 255, 255] : over(rgba(getComputedStyle(e).backgroundColor), behind(e.parentElement));
  const light = (c) => { const [r, g, b] = c.map((n) => n / 255).map((n) => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((x, y) => y - x); return (x + 0.05) / (y + 0.05); };
  for (const e of all) {
    if (!shown(e) || e.closest("svg")) continue;
    const says = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.matches("input, select");
    if (!says) continue;
    const style = getComputedStyle(e), ground = behind(e);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    for (const [what, color] of [["text", style.color]].concat(e.matches("input[placeholder]") ? [["placeholder", getComputedStyle(e, "::placeholder").color]] : [])) {
      const is = contrast(over(rgba(color), ground), ground);
      if (is < (large ? 3 : 4.5)) flaws.push(name(e) + ": contrast of the " + what + " is " + is.toFixed(2));
    }
  }
  return [...new Set(flaws)];
})()`

// accessible checks what the page shows now, light and dark: names, order and contrast.
func (b *browser) accessible(t *testing.T, what string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		call[any](b.chromium, "Emulation.setEmulatedMedia", args{"features": []args{{"name": "prefers-color-scheme", "value": scheme}}})
		if found := eval[[]string](b, flaws); len(found) > 0 {
			t.Errorf("%s, %s:\n%s", what, scheme, strings.Join(found, "\n"))
		}
	}
	call[any](b.chromium, "Emulation.setEmulatedMedia", args{"features": []args{}})
}

// tab presses the tabulator, and returns what has the focus then. Nothing is "body".
func (b *browser) tab() string {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		call[any](b.chromium, "Input.dispatchKeyEvent", args{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9})
	}
	return eval[string](b, `(() => { const e = document.activeElement; if (!e || e === document.body) return "body";
		const style = getComputedStyle(e); return (e.id || e.innerText?.trim() || e.name) + (style.outlineStyle === "none" ? " without a mark" : ""); })()`)
}

// TestAccessible goes over the page by the tabulator, and checks it in the states that an
// operator sees: calm, with a rule and a key opened, with a refusal and without Redis.
func TestAccessible(t *testing.T) {
	t.Parallel()
	b := withHands(t)
	p := start(t)
	b.visit(p.url, len(rules))
	b.accessible(t, "without calls")
	eval[any](b, `document.activeElement.blur(); void (window.scrollTo(0, 0))`)
	// A list that is not shown has no text, and is passed over.
	want := append([]string{"Skip to the rules"}, eval[[]string](b, `[...document.querySelectorAll("#findings summary")].map((e) => e.innerText.trim()).filter((text) => text !== "")`)...)
	want = append(want, "range", "filter", "show")
	want = append(want, eval[[]string](b, `[...document.querySelectorAll("#rule-rows button")].map((e) => e.innerText)`)...)
	want = append(want, "lookup-rule", "lookup-key", "Look up")
	for i, is := range want {
		if got := b.tab(); got != is {
			t.Fatalf("the focus is at %q after %d tabulators, want %q", got, i+1, is)
		}
	}
	p.call(t)
	b.wait("the keys that are refused most", text("#refused")+`.includes("globex:robot")`)
	b.press(create.Name)
	b.fill("tr.detail input[name=max]", "50")
	b.enter()
	b.wait("an overridden limit", text("#rules")+`.includes("50 per 1h")`)
	b.fill("#lookup-rule", create.Name)
	b.fill("#lookup-key", "globex:robot")
	b.enter()
	b.click("Block")
	b.accessible(t, "with a question")
	b.confirm("Refuse all calls of globex:robot")
	b.wait("a blocked key", text("#lookup-result")+`.includes("Never admitted")`)
	b.wait("the changes", `document.querySelectorAll("#changes > li").length === 2`)
	b.accessible(t, "with a rule and a key opened")
	p.lock(true)
	b.click("Unblock")
	b.wait("a refusal", text("#notice")+`.includes("you may look, and not touch")`)
	b.accessible(t, "with a refusal")
	p.redis.Kill()
	b.wait("undecided calls", `document.querySelector("#rule-rows .worry") !== null`)
	b.accessible(t, "without Redis")
	// The check would notice: text in the colour of its ground, and a button without a name.
	eval[any](b, `document.getElementById("summary").style.color = "var(--ground)"; void document.querySelector("main").append(document.createElement("button"))`)
	if found := strings.Join(eval[[]string](b, flaws), "\n"); !strings.Contains(found, "#summary") || !strings.Contains(found, "has no name") {
		t.Errorf("flaws are not found: %s", found)
	}
}
