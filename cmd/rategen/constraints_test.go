package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	typeS       = "type S struct{}\n\n"
	limitedGet  = "//ratelimit:key=#id max=5\nfunc (*S) Get(id string) error { return nil }\n\n"
	plainSync   = "func (*S) Sync(n int) error { return nil }\n"
	skippedNote = ": skipped, build constraints exclude it: set GOOS, GOARCH or -tags to generate for it\n"
)

// A run on one system removes nothing that another one needs, wherever it stands.
func TestOtherSystems(t *testing.T) {
	dir := writeModule(t, map[string]string{
		"go.mod": module["go.mod"],
		// The file with the type has no directive itself.
		"s/s_linux.go":   "package s\n\n" + typeS,
		"s/get_linux.go": "package s\n\n" + limitedGet,
		"s/any.go":       "package s\n",
		"o/o_linux.go":   limited("o", "O", "go tool rategen -out ../limits"),
		"o/tagged.go":    "//go:build special\n\n" + limited("o", "Tagged", "go tool rategen -out ../limits"),
		"o/any.go":       limited("o", "Any", "go tool rategen -out ../limits"),
	})
	t.Setenv("GOARCH", "amd64")
	t.Setenv("GOOS", "linux")
	expect(t, dir, 0, "limits/any_ratelimit.go: wrote\nlimits/o_ratelimit_linux.go: wrote\nlimits/tagged_ratelimit.go: wrote\ns/s_ratelimit_linux.go: wrote\n", "-v", "-tags", "special", "./...")
	expect(t, dir, 0, "limits/any_ratelimit.go: unchanged\nlimits/o_ratelimit_linux.go: unchanged\ns/s_ratelimit_linux.go: unchanged\no/tagged.go"+skippedNote, "-v", "./...")
	t.Setenv("GOOS", "windows")
	// What another build generates is missed where it has never been generated.
	for _, name := range []string{"limits/tagged_ratelimit.go", "s/s_ratelimit_linux.go"} {
		path := filepath.Join(dir, name)
		os.Rename(path, path+".txt")
		expect(t, dir, 1, "o/o_linux.go"+skippedNote+"o/tagged.go"+skippedNote+"s/get_linux.go"+skippedNote+name+": missing: run go generate\n", "-check", "./...")
		os.Rename(path+".txt", path)
	}
	expect(t, dir, 0, "limits/any_ratelimit.go: unchanged\no/o_linux.go"+skippedNote+"o/tagged.go"+skippedNote+"s/get_linux.go"+skippedNote, "-v", "./...")

	// What no build asks for any more goes.
	os.WriteFile(filepath.Join(dir, "o", "tagged.go"), []byte("//go:build special\n\npackage o\n"), 0o644)
	os.WriteFile(filepath.Join(dir, "s", "get_linux.go"), []byte("package s\n"), 0o644)
	expect(t, dir, 0, "limits/any_ratelimit.go: unchanged\nlimits/tagged_ratelimit.go: removed\ns/s_ratelimit_linux.go: removed\no/o_linux.go"+skippedNote, "-v", "./...")
}

// Methods of a type that do not exist, or are not limited, in every build of it are
// errors, and the same ones on every system.
func TestMethodsOfSomeBuilds(t *testing.T) {
	const base = "package m\n\n" + typeS
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"directive on one system", map[string]string{"s.go": base, "get_linux.go": "package m\n\n" + limitedGet},
			"get_linux.go:4:11: method Get of S has a directive in get_linux.go, which is not built wherever s.go is, so what is generated for s.go would differ: " +
				"declare S under the same build constraints, or move the method to a file without any\n"},
		{"directive behind a tag", map[string]string{"s.go": base + limitedGet, "more.go": "//go:build special\n\npackage m\n\n//ratelimit:max=5\n" + plainSync},
			"more.go:6:11: method Sync of S has a directive in more.go, which is not built wherever s.go is, so what is generated for s.go would differ: " +
				"declare S under the same build constraints, or move the method to a file without any\n"},
		{"method on one system", map[string]string{"s.go": base + limitedGet, "sync_linux.go": "package m\n\n" + plainSync},
			"sync_linux.go:3:11: method Sync of S is declared in sync_linux.go only, which is not built wherever s.go is, so the interface generated for S would differ: " +
				"declare the method in every build, make it unexported, or limit an interface of your own\n"},
		{"two signatures", map[string]string{"s.go": base + limitedGet, "sync_linux.go": "package m\n\n" + plainSync,
			"sync_other.go": "//go:build !linux\n\npackage m\n\nfunc (*S) Sync() error { return nil }\n"},
			"sync_other.go:5:11: method Sync of S has another signature in sync_linux.go, so what is generated for s.go would differ from build to build: write func(n int) error in both\n"},
		{"one of each", map[string]string{"s.go": base + limitedGet, "sync_linux.go": "package m\n\n" + plainSync, "sync_other.go": "//go:build !linux\n\npackage m\n\n" + plainSync}, ""},
		{"all on one system", map[string]string{"s_linux.go": base, "get.go": "//go:build linux\n\npackage m\n\n" + limitedGet + plainSync, "any.go": "package m\n"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.files["go.mod"] = module["go.mod"]
			dir := writeModule(t, c.files)
			code := 0
			if c.want != "" {
				code = 1
			}
			for _, goos := range []string{"linux", "windows"} {
				t.Setenv("GOOS", goos)
				want := c.want
				if goos == "windows" && c.name == "directive on one system" {
					// No other file has a directive, so there is nothing to compare.
					code, want = 0, "get_linux.go"+skippedNote
				}
				if goos == "windows" && c.name == "all on one system" {
					want = "get.go" + skippedNote
				}
				expect(t, dir, code, want)
			}
		})
	}
}

// The files are the same whichever build generates them, and compile in each.
func TestSameInEveryBuild(t *testing.T) {
	files := map[string]string{
		"go.mod":      module["go.mod"],
		"s.go":        limited("m", "S", "go tool rategen"),
		"linux.go":    "//go:build linux\n\npackage m\n\nvar sDoLimit int\n",
		"s_plan9.go":  "package m\n\nvar sDoLimit2, time int\n",
		"t_test.go":   "package m\n\nvar sDoLimit3 int\n",
		"sget.go":     "//go:build special\n\npackage m\n\n//ratelimit:max=5\ntype SDo interface{ Get() error }\n",
		"o/o.go":      limited("o", "O", "go tool rategen -out ../limits"),
		"k.go":        "package m\n\ntype K interface {\n\t//ratelimit:key=#id max=most window=period algorithm=leaky-bucket burst=most wait=wait\n\tDo(id string) error\n}\n",
		"k_plain.go":  "//go:build !special\n\npackage m\n\nimport \"time\"\n\nconst (\n\tmost = 5\n\tperiod = time.Minute\n\twait = 0 * period\n)\n",
		"k_tag.go":    "//go:build special\n\npackage m\n\nimport \"time\"\n\nconst (\n\tmost = 50\n\tperiod = time.Second\n\twait = period\n)\n",
		"limits/l.go": "//go:build special\n\npackage limits\n\nvar oDoLimit int\n",
	}
	dir := writeModule(t, files)
	t.Setenv("GOARCH", "amd64")
	for _, goos := range []string{"linux", "plan9", "windows"} {
		t.Setenv("GOOS", goos)
		for _, tags := range []string{"special", ""} {
			if code, out, errs := rategen(dir, "-tags", tags, "./..."); code != 0 {
				t.Fatal(goos, tags, code, out, errs)
			}
			got := map[string]string{}
			for _, name := range []string{"s_ratelimit.go", "sget_ratelimit.go", "k_ratelimit.go", "limits/o_ratelimit.go"} {
				content, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				got[name] = string(content)
			}
			if goos == "linux" && tags == "special" {
				for name, content := range got {
					files[name] = content
				}
				if !strings.Contains(got["s_ratelimit.go"], "sDoLimit4") || !strings.Contains(got["limits/o_ratelimit.go"], "oDoLimit2") {
					t.Error(got)
				}
			}
			for name, content := range got {
				if content != files[name] {
					t.Errorf("%s differs with GOOS=%s and tags %q", name, goos, tags)
				}
			}
		}
	}
}
