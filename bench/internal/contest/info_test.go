package contest

import (
	"testing"
	"time"
)

const info = "# CPU\r\nused_cpu_sys:1.250000\r\nused_cpu_user:2.000001\r\nused_cpu_sys_children:9.0\r\nused_cpu_user_main_thread:9.0\r\n" +
	"\r\n# Commandstats\r\n" +
	"cmdstat_evalsha:calls=7,usec=90,usec_per_call=12.86,rejected_calls=0,failed_calls=0\r\n" +
	"cmdstat_eval:calls=1,usec=9,usec_per_call=9.00,rejected_calls=0,failed_calls=0\r\n" +
	"cmdstat_get:calls=20,usec=9,usec_per_call=0.45,rejected_calls=0,failed_calls=0\r\n" +
	"cmdstat_client|setinfo:calls=4,usec=9,usec_per_call=0.45,rejected_calls=0,failed_calls=0\r\n" +
	"cmdstat_info:calls=5,usec=9,usec_per_call=0.45,rejected_calls=0,failed_calls=0\r\n"

func TestParseUsage(t *testing.T) {
	got, err := parseUsage(info)
	if err != nil {
		t.Fatal(err)
	}
	want := usage{cpu: 3250001 * time.Microsecond, scripts: 8, commands: 28}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := got.since(usage{time.Second, 1, 2}); got != (usage{2250001 * time.Microsecond, 7, 26}) {
		t.Errorf("since: got %+v", got)
	}
	for _, bad := range []string{"used_cpu_sys:much\r\n", "cmdstat_get:calls=x,usec=9\r\n"} {
		if _, err := parseUsage(bad); err == nil {
			t.Errorf("%q is taken for INFO", bad)
		}
	}
}

func TestMachine(t *testing.T) {
	if got := model("processor\t: 0\nmodel name\t: Some CPU @ 3: fast\nprocessor\t: 1\n"); got != "Some CPU @ 3: fast" {
		t.Errorf("model %q", got)
	}
	if got := recent("1.50 2.00 3.00 1/234 5678\n"); got != "1.50" {
		t.Errorf("load %q", got)
	}
	if got, load := model(""), recent(""); got != "unknown processor" || load != "unknown" {
		t.Errorf("of nothing: %q, %q", got, load)
	}
}
