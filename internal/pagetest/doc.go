// Package pagetest opens the page of runtime/ratepage in a browser, as an operator
// does.
//
// Its test needs chromium, and is skipped without it unless
// RATEGEN_REQUIRE_CHROMIUM=1.
package pagetest
