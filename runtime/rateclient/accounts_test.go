package rateclient

import (
	"strconv"
	"testing"
	"time"
)

// TestAccounts wants what is known of keys to be bounded, whatever is asked for, and what is in
// use not to be forgotten.
func TestAccounts(t *testing.T) {
	t.Parallel()
	k, at := accounts{lifetime: time.Minute}, now
	held := k.get("held", at)
	held.hold(&Answer{HoldOff: 2 * time.Hour}, &Peer{MaxHold: 3 * time.Hour}, at)
	waits := k.get("waits", at)
	if waits.enter(lane{share: 1}, at.Add(100*365*24*time.Hour)) == nil {
		t.Fatal("no line")
	}
	for round := range 4 {
		for i := range maxAccounts {
			s := k.get(strconv.Itoa(round)+"/"+strconv.Itoa(i), at)
			s.served() // it can be used, whether it stays known or not
		}
		if n := len(k.known); n > maxAccounts {
			t.Fatalf("%d keys are known", n)
		}
		if k.find("held", at) != held || k.find("waits", at) != waits {
			t.Fatal("a key that is in use was forgotten")
		}
		at = at.Add(20 * time.Minute)
	}
	at = at.Add(time.Hour)
	k.get("one more", at)
	k.get("and one more", at.Add(time.Hour))
	if n := len(k.known); n > 4 || k.find("held", at) != nil || k.find("waits", at) != waits {
		t.Errorf("%d keys are known later, %v", n, k.known["held"])
	}
}
