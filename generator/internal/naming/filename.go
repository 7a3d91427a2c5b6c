package naming

import (
	"path/filepath"
	"strings"
)

// OutputFile returns the name of the file generated for a source file:
// x_ratelimit.go for x.go. What the go command reads from a file's name, _test
// and the names of a system and a processor, stays at its end.
func OutputFile(source string) string {
	dir, base := filepath.Split(source)
	base = strings.TrimSuffix(base, ".go")
	base, test := strings.CutSuffix(base, "_test")
	suffix := platformSuffix(base)
	name := strings.TrimSuffix(base, suffix) + "_ratelimit" + suffix
	if test {
		name += "_test"
	}
	return dir + name + ".go"
}

// SourceFile returns the name of the file that a file with a name of [OutputFile] is
// generated for.
func SourceFile(output string) string { return strings.Replace(output, "_ratelimit", "", 1) }

// Platform returns the constraint in a file's name, as a //go:build line writes
// it, or "".
func Platform(path string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".go"), "_test")
	return strings.ReplaceAll(strings.TrimPrefix(platformSuffix(base), "_"), "_", " && ")
}

// platformSuffix returns the _GOOS, _GOARCH or _GOOS_GOARCH at the end of a
// file's name, by the rules of go/build.
func platformSuffix(base string) string {
	parts := strings.Split(base, "_")
	n := len(parts)
	if n >= 3 && knownOS[parts[n-2]] && knownArch[parts[n-1]] {
		return "_" + parts[n-2] + "_" + parts[n-1]
	}
	if n >= 2 && (knownOS[parts[n-1]] || knownArch[parts[n-1]]) {
		return "_" + parts[n-1]
	}
	return ""
}

// The names that constrain a file, as in the go command's internal/syslist.
var (
	knownOS = words("aix android darwin dragonfly freebsd hurd illumos ios js linux nacl " +
		"netbsd openbsd plan9 solaris wasip1 windows zos")
	knownArch = words("386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 " +
		"mips64le mips64p32 mips64p32le ppc ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm")
)

func words(text string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(text) {
		m[w] = true
	}
	return m
}
