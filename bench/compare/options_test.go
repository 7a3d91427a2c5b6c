package main

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rategen/rategen/bench/internal/contest"
)

func TestParse(t *testing.T) {
	var told bytes.Buffer
	o, err := parse([]string{"-quick", "-runs", "3", "-cores", "2", "-connections", "7", "-only", "packed|zset", "-cases", "1 caller, 1,000 keys"}, &told)
	if err != nil || told.Len() > 0 {
		t.Fatal(err, told.String())
	}
	if o.runs != 3 || o.cores != 2 || o.plan.Connections != 7 || o.plan.Rounds != contest.Quick.Rounds {
		t.Errorf("%+v", o)
	}
	if part := o.plan.Part; part.Only.String() != "packed|zset" || part.Cases.String() != "1 caller, 1,000 keys" {
		t.Errorf("%v", part)
	}
	o, err = parse([]string{"-callers", "3,5", "-rounds", "9"}, &told)
	if err != nil || !slices.Equal(o.plan.Callers, []int{3, 5}) || o.plan.RoundsCurve != 9 || o.plan.Part.Cases.String() != "^curve " {
		t.Errorf("a curve: %+v, %v", o, err)
	}
	o, err = parse([]string{"-callers", "3,5", "-write", ".."}, &told)
	if err != nil || o.checkout != ".." {
		t.Errorf("a curve to be written: %+v, %v", o, err)
	}
	o, err = parse([]string{"-callers", "8", "-away", "5ms"}, &told)
	if err != nil || o.plan.Away != 5*time.Millisecond {
		t.Errorf("a Redis that is away: %+v, %v", o, err)
	}
	o, err = parse(nil, &told)
	if err != nil || !reflect.DeepEqual(o.plan, contest.Whole) || o.runs != 1 {
		t.Errorf("without flags: %+v, %v", o, err)
	}
	o, err = parse([]string{"-runs", "5", "-write", ".."}, &told)
	if err != nil || o.checkout != ".." || o.runs != 5 {
		t.Errorf("all of it five times: %+v, %v", o, err)
	}
}

func TestParseFaults(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-write .. -only packed", "-write needs all numbers, or those of the curve: leave out -only, and -cases"},
		{"-write .. -cases hot", "-write needs all numbers, or those of the curve: leave out -only, and -cases"},
		{"-write .. -callers 3 -only packed", "-write needs all numbers, or those of the curve: leave out -only, and -cases"},
		{"-write .. -away 1ms", "-write needs the numbers of a Redis that is near: leave out -away"},
		{"-away -1ms", "-away -1ms: it cannot be negative"},
		{"-callers 3,,4", `invalid value "3,,4" for flag -callers: "" is no number of callers`},
		{"-callers 0", `invalid value "0" for flag -callers: "0" is no number of callers`},
		{"-runs 0", "-runs 0: at least one run is needed"},
		{"-only packt", `no limiter's name matches "packt"`},
		{"-cases warm", `no case's heading matches "warm"`},
		{"-cases (", `invalid value "(" for flag -cases: error parsing regexp`},
		{"quick", `unexpected argument "quick"`},
	} {
		_, err := parse(strings.Fields(test.args), new(bytes.Buffer))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.args, err, test.want)
		}
	}
}
