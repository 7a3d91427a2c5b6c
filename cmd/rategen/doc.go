// Rategen writes rate limits for Go interfaces.
//
// Usage:
//
//	rategen [-check] [-v] [-tags list] [packages]
package main
