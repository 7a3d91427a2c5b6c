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

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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
	b.do("scroll up", chromedp.Evaluate(`document.activeElement.blur(); document.getElementById("notice").hidden = true; window.scrollTo(0, 0)`, nil))
	for _, shot := range []struct {
		file, scheme string
		width        int64
	}{
		{"page-light.png", "light", 1200},
		{"page-dark.png", "dark", 1200},
		{"page-narrow.png", "light", 390},
	} {
		var data []byte
		b.do(shot.file,
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: shot.scheme}}),
			chromedp.EmulateViewport(shot.width, 844), chromedp.FullScreenshot(&data, 100))
		if wide := eval[bool](b, "document.documentElement.scrollWidth > document.documentElement.clientWidth"); wide {
			t.Errorf("%s: the page is wider than the window", shot.file)
		}
		if os.Getenv("RATEGEN_WRITE_PICTURES") != "1" {
			continue
		}
		data = fewerColours(t, data)
		if len(data) > maxPicture {
			t.Errorf("%s has %d bytes, the most is %d", shot.file, len(data), maxPicture)
		}
		if err := os.WriteFile("../../docs/"+shot.file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.do("as before", emulation.SetEmulatedMedia(), chromedp.EmulateViewport(1280, 900))
}

// fewerColours returns a picture with its 128 most frequent colours, in which each
// other one becomes the nearest of them.
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
	for _, c := range colours[:min(len(colours), 128)] {
		palette = append(palette, c)
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
