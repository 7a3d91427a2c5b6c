package rateclient

import (
	"strconv"
	"testing"
	"time"
)

// TestKeys wants what is known of keys to be bounded, whatever is asked for, and what is in
// use not to be forgotten.
func TestKeys(t *testing.T) {
	t.Parallel()
	k, at := keys{lifetime: time.Minute}, now
	held := k.get("held", at)
	held.hold(at.Add(2 * time.Hour))
	waits := k.get("waits", at)
	if _, ok := waits.enter(1, at.Add(100*time.Hour)); !ok {
		t.Fatal("no line")
	}
	for round := range 4 {
		for i := range maxKeys {
			s := k.get(strconv.Itoa(round)+"/"+strconv.Itoa(i), at)
			s.served() // it can be used, whether it stays known or not
		}
		if n := len(k.known); n > maxKeys {
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
