package redistest

import "testing"

func TestProduct(t *testing.T) {
	for info, want := range map[string]string{
		"# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n":                     "Redis 7.0.15",
		"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.7\r\n": "Valkey 8.1.7",
	} {
		if got := Product(info); got != want {
			t.Errorf("%q: got %q, want %q", info, got, want)
		}
	}
}
