package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// redirect has standard output go into the file that the configuration of go vet names.
// Since Go 1.26 go vet reads the findings from there, and golang.org/x/tools writes them
// there from v0.38 on: with an older one go vet would succeed whatever was found.
func redirect(configuration string) {
	var config struct{ Stdout string }
	data, err := os.ReadFile(configuration)
	if err != nil || json.Unmarshal(data, &config) != nil || config.Stdout == "" {
		return // golang.org/x/tools reports what is wrong with it
	}
	if file, err := os.Create(config.Stdout); err == nil {
		os.Stdout = file
	}
}

// mustList ends the program in the words of the go command if that cannot list packages: the checker
// would say that none match.
func mustList(args []string) {
	patterns := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	for _, list := range [][]string{{"list", "-export", "internal/goarch"}, append([]string{"list", "-e", "--"}, patterns...)} {
		var stderr strings.Builder
		cmd := exec.Command("go", list...)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "rategen-vet: the go command cannot list packages: %s\n", cmp.Or(strings.TrimSpace(stderr.String()), err.Error()))
			os.Exit(1)
		}
	}
}

// mustRead ends the program if its golang.org/x/tools is too old to read what the go
// command compiles: it would end it too, without a reason.
func mustRead() {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedExportFile | packages.NeedTypes}, "internal/goarch")
	if err != nil || len(pkgs) != 1 || len(pkgs[0].Errors) == 0 {
		return
	}
	tools := "golang.org/x/tools"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == tools {
				tools += " " + m.Version
			}
		}
	}
	fmt.Fprintf(os.Stderr, "rategen-vet: %s, which it is built with, cannot read what this go command compiles: run go vet -vettool=$(go tool -n rategen-vet), or go get golang.org/x/tools@latest\n", tools)
	os.Exit(1)
}
