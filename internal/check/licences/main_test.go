package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rategen/rategen/internal/testkit/effort"
)

// TestListed compares the page with what is linked. It needs the dependencies of the
// nested modules.
func TestListed(t *testing.T) {
	if !effort.Full() {
		t.Skip("in a full run only")
	}
	if err := run("../../..", false); err != nil {
		t.Error(err)
	}
}

// TestLicences tells licences apart.
func TestLicences(t *testing.T) {
	own, err := os.ReadFile("../../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	const bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that"
	for name, c := range map[string]struct{ text, want, err string }{
		"own":           {string(own), "Apache-2.0", ""},
		"two clauses":   {bsd, "BSD-2-Clause", ""},
		"three clauses": {bsd + "\n * Neither the name of", "BSD-3-Clause", ""},
		"two licences":  {bsd + string(own), "Apache-2.0, BSD-2-Clause", ""},
		"copyleft":      {"Mozilla Public License Version 2.0 and " + string(own), "", "not a permissive"},
		"gnu":           {"GNU   GENERAL PUBLIC\nLICENSE", "", "not a permissive"},
		"unknown":       {"All rights reserved.", "", "unknown"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "LICENSE.txt"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := licenceIn(dir)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := licenceIn(t.TempDir()); err == nil {
		t.Error("a module without a licence")
	}
}
