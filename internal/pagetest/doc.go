// Package pagetest opens the page of runtime/ratepage in a real browser. It is a
// module of its own, so that programs with limits do not depend on what drives the
// browser.
//
// Its test needs chromium, and is skipped without it unless
// RATEGEN_REQUIRE_CHROMIUM=1. With RATEGEN_WRITE_PICTURES=1 it writes the pictures
// of docs/page.md.
package pagetest
