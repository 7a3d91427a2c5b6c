// The rules and overrides that the parts of the page share.

import { clock, count, duration } from "./dom.js";

let rules = [];
let entries = []; // what the overrides say
let differ = new Map(); // what processes have of the rules that differ

export function setRules(list) { rules = list; }
export function setEntries(list) { entries = list; }

export const all = () => rules;
export const names = () => rules.map((r) => r.name);
export const named = (name) => rules.find((r) => r.name === name);

// setDiffer reports whether rules differ otherwise than before.
export function setDiffer(list) {
  const before = JSON.stringify([...differ]);
  differ = new Map(list.map((d) => [d.rule, d.limits]));
  return JSON.stringify([...differ]) !== before;
}

// limitsText is what some process has of a rule, if processes differ, or what is in force in this one.
export const limitsText = (rule) => differ.get(rule.name) ?? limitText(rule);

export function limitText(rule) {
  if (rule.algorithm === "concurrency") return `${count(rule.max)} at a time`;
  if (rule.origin === "call") return `per call, in ${rule.period || duration(rule.window_ms)}`;
  return `${count(rule.max)} per ${rule.period || duration(rule.window_ms)}`;
}

// endsOf returns in words when what overrides a rule itself ends.
export function endsOf(rule) {
  return entries.filter((e) => e.rule === rule && e.pattern === null && !e.ended).map(ends).find(Boolean) ?? null;
}

// ends returns in words when an override ends, or nothing.
export function ends(e) {
  if (e.until) return `until ${clock(e.until)}`;
  return Object.entries(e.ends ?? {}).map(([field, end]) => `${field} until ${clock(end)}`).join(", ");
}
