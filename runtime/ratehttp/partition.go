package ratehttp

import (
	"crypto/hmac"
	"crypto/sha256"
)

// partitionBytes is how long a partition key is: long enough that no two clients
// share one by accident.
const partitionBytes = 12

// partitionKey returns the partition key that stands for a value.
func partitionKey(secret []byte, value string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(value))
	return string(mac.Sum(nil)[:partitionBytes])
}
