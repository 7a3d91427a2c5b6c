package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
