// Elements and numbers. Text that comes from callers is only ever a text node.

export const $ = (id) => document.getElementById(id);

// el makes an element. Properties that begin with "on" are listeners; children
// that are no elements become text; null and false are left out.
export function el(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "class") e.className = value;
    else if (name === "value" || name === "disabled" || name === "hidden") e[name] = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

// breakable is a name that a narrow window breaks after its dots.
export const breakable = (name) => el("span", {}, ...name.split(/(?<=\.)/).flatMap((part) => [part, el("wbr")]).slice(0, -1));

const svgSpace = "http://www.w3.org/2000/svg";

export function svg(tag, props = {}, ...children) {
  const e = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(props)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

// setText changes text only if it is another one, so that nothing is selected or
// announced again.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// bar is a horizontal bar that is full at a share of 1.
export function bar(share, bad) {
  const inner = el("span");
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return el("div", { class: "bar", "data-bad": bad || null }, inner);
}

export function tag(name, text) {
  return el("span", { class: "tag", "data-tag": name }, text);
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// count writes a number of calls.
export const count = (n) => (n < 100000 ? whole.format(n) : short.format(n));

// rate writes calls per second.
export function rate(n) {
  if (n === 0) return "0";
  if (n < 10) return n.toFixed(1);
  return count(n);
}

// duration writes milliseconds as a directive does, in two units at most.
export function duration(ms) {
  if (ms <= 0) return "0s";
  if (ms < 1000) return `${ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)}ms`;
  const units = [["d", 86400000], ["h", 3600000], ["m", 60000], ["s", 1000]];
  let rest = ms < 60000 ? Math.round(ms / 100) * 100 : Math.round(ms / 1000) * 1000;
  const parts = [];
  for (const [name, size] of units) {
    if (rest < size || parts.length === 2) continue;
    const n = name === "s" ? rest / size : Math.floor(rest / size);
    parts.push(`${Number(n.toFixed(1))}${name}`);
    rest -= Math.floor(rest / size) * size;
    if (name === "s") rest = 0;
  }
  return parts.join(" ");
}

// parseDuration reads 500ms, 10s, 1m30s or 2d as milliseconds, or returns null.
export function parseDuration(text) {
  const size = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };
  const compact = text.replaceAll(/\s/g, "");
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(compact)) return null;
  let ms = 0;
  for (const [, n, unit] of compact.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) ms += Number(n) * size[unit];
  return ms;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 ? n : n.toFixed(1)} ${units[i]}`;
}

// hour writes the time of day without its zone.
export const hour = (when) => new Date(when).toLocaleTimeString("en-GB");

// clock writes the time of day with its zone, and the day if it is another one.
export function clock(when) {
  const t = new Date(when);
  const time = t.toLocaleTimeString("en-GB", { timeZoneName: "short" });
  return t.toDateString() === new Date().toDateString() ? time : `${t.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

// confirmed asks the viewer before something is done that refuses calls or forgets counts.
export function confirmed(question) {
  const dialog = $("sure");
  setText($("sure-question"), question);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}
$("sure-yes").addEventListener("click", () => $("sure").close("yes"));
$("sure-no").addEventListener("click", () => $("sure").close());

let hide;

// notice shows a message for some seconds.
export function notice(text, bad) {
  const e = $("notice");
  e.toggleAttribute("data-bad", Boolean(bad));
  e.textContent = text;
  e.hidden = false;
  clearTimeout(hide);
  hide = setTimeout(() => { e.hidden = true; }, bad ? 12000 : 5000);
}
