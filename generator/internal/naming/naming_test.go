package naming

import "testing"

func TestOutputName(t *testing.T) {
	for source, want := range map[string]string{
		"x.go":                    "x_ratelimit.go",
		"/a/b_c/x.go":             "/a/b_c/x_ratelimit.go",
		"x_test.go":               "x_ratelimit_test.go",
		"x_linux.go":              "x_ratelimit_linux.go",
		"x_arm64.go":              "x_ratelimit_arm64.go",
		"x_linux_arm64.go":        "x_ratelimit_linux_arm64.go",
		"x_linux_arm64_test.go":   "x_ratelimit_linux_arm64_test.go",
		"linux.go":                "linux_ratelimit.go",
		"linux_amd64.go":          "linux_ratelimit_amd64.go",
		"x_arm64_linux.go":        "x_arm64_ratelimit_linux.go",
		"employee_service.go":     "employee_service_ratelimit.go",
		"x_unix.go":               "x_unix_ratelimit.go",
		"x_test_linux.go":         "x_test_ratelimit_linux.go",
		"some_ratelimit.go":       "some_ratelimit_ratelimit.go",
		"dots.pb_windows_test.go": "dots.pb_ratelimit_windows_test.go",
	} {
		if got := OutputFile(source); got != want {
			t.Errorf("outputFile(%q) = %q, want %q", source, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"EmployeeService": "employeeService", "HTTPClient": "httpClient", "ID": "id", "X": "x",
		"store": "store", "A1": "a1", "Ärzte": "ärzte", "服务": "服务",
	} {
		if got := LowerFirst(name); got != want {
			t.Errorf("lowerFirst(%q) = %q, want %q", name, got, want)
		}
	}
	for _, c := range [][3]string{
		{"Store", "RateLimitedStore", "NewRateLimitedStore"},
		{"store", "rateLimitedStore", "newRateLimitedStore"},
		{"_x", "rateLimited_x", "newRateLimited_x"},
		{"服务", "rateLimited服务", "newRateLimited服务"},
	} {
		if w, n := Wrapper(c[0]), Constructor(Wrapper(c[0])); w != c[1] || n != c[2] {
			t.Errorf("%s: %s, %s", c[0], w, n)
		}
	}
}
