package redis

import "bytes"

// slotCount is the number of slots of a cluster, see
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/.
const slotCount = 16384

// slotOf returns the slot of a key: the CRC16 of its hash tag, modulo [slotCount].
func slotOf(key []byte) int {
	var crc uint16
	for _, b := range hashTag(key) {
		crc = crc<<8 ^ crc16[byte(crc>>8)^b]
	}
	return int(crc % slotCount)
}

// hashTag returns the part of a key between its first { and the next }, or the
// whole key if there is none or it is empty. Keys with the same hash tag lie in
// the same slot.
func hashTag(key []byte) []byte {
	if start := bytes.IndexByte(key, '{'); start >= 0 {
		if length := bytes.IndexByte(key[start+1:], '}'); length > 0 {
			return key[start+1 : start+1+length]
		}
	}
	return key
}

// crc16 is the table of CRC-16/XMODEM, polynomial 0x1021.
var crc16 = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
