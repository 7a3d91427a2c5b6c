// Package pagetest opens the page of runtime/ratepage in a browser, as an operator
// does.
//
// Its test needs chromium, and is skipped without it unless
// RATEGEN_REQUIRE_CHROMIUM=1. With RATEGEN_WRITE_PICTURES=1 it writes the pictures
// of docs/operating.md, which takes two minutes.
package pagetest
