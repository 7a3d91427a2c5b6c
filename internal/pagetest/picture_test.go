package pagetest

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"
)

// maxPicture is how large a picture may be in bytes.
const maxPicture = 150_000

// picture takes pictures of the page: light, dark, and as on a telephone. It writes
// them to docs if the environment asks for that.
func (b *browser) picture(t *testing.T) {
	t.Helper()
	// Charts need some time to look like something.
	if os.Getenv("RATEGEN_WRITE_PICTURES") == "1" {
		b.wait("two minutes of calls", `(document.querySelector("[data-column=admitted] .line").getAttribute("d").match(/L/g) ?? []).length > 60`)
	}
	eval[any](b, `document.activeElement.blur(); document.getElementById("notice").hidden = true; window.scrollTo(0, 0)`)
	for _, shot := range []struct {
		file, scheme string
		width        int
	}{
		{"page-light.png", "light", 1200},
		{"page-dark.png", "dark", 1200},
		{"page-narrow.png", "light", 390},
	} {
		call[any](b.chromium, "Emulation.setEmulatedMedia", args{"features": []args{{"name": "prefers-color-scheme", "value": shot.scheme}}})
		b.resize(shot.width, 844)
		if wide := eval[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth"); wide {
			t.Errorf("%s: the page is wider than the window", shot.file)
		}
		if os.Getenv("RATEGEN_WRITE_PICTURES") != "1" {
			continue
		}
		height := eval[int](b, "document.documentElement.scrollHeight")
		if shot.width < 500 {
			height = min(height, 1300) // the rest looks like the beginning
		}
		data := fewerColours(t, call[struct{ Data []byte }](b.chromium, "Page.captureScreenshot", args{
			"captureBeyondViewport": true, "clip": args{"x": 0, "y": 0, "width": shot.width, "height": height, "scale": 1},
		}).Data)
		if len(data) > maxPicture {
			t.Errorf("%s has %d bytes, the most is %d", shot.file, len(data), maxPicture)
		}
		if err := os.WriteFile("../../docs/"+shot.file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	call[any](b.chromium, "Emulation.setEmulatedMedia", args{"features": []args{}})
	b.resize(1280, 900)
}

// fewerColours returns a picture with its most frequent colours that are not much
// alike, in which each other one becomes the nearest of them.
func fewerColours(t *testing.T, data []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	bounds := from.Bounds()
	often := make(map[color.NRGBA]int)
	at := func(x, y int) color.NRGBA { return color.NRGBAModel.Convert(from.At(x, y)).(color.NRGBA) }
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			often[at(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(often), func(a, b color.NRGBA) int { return cmp.Compare(often[b], often[a]) })
	palette := color.Palette{}
	for _, c := range colours {
		if len(palette) < 256 && !slices.ContainsFunc(palette, func(o color.Color) bool { return alike(c, o.(color.NRGBA)) }) {
			palette = append(palette, c)
		}
	}
	nearest := make(map[color.NRGBA]uint8)
	to := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// alike reports whether nobody sees the difference of two colours at once.
func alike(a, b color.NRGBA) bool {
	far := func(x, y uint8) int { return max(int(x)-int(y), int(y)-int(x)) }
	return max(far(a.R, b.R), far(a.G, b.G), far(a.B, b.B)) < 5
}
