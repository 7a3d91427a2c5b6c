package configmap

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/rategen/rategen/examples/wiring/quotes"
	"github.com/rategen/rategen/runtime"
)

// decode reads a manifest, every field of which must be known.
func decode[T any](t *testing.T, path string) (manifest T) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Load(content, &manifest, yaml.WithKnownFields()); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return manifest
}

type Header struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
}

type configMap struct {
	Header `yaml:",inline"`
	Data   map[string]string
}

type deployment struct {
	Header `yaml:",inline"`
	Spec   struct {
		Replicas int
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Containers []struct {
					Name, Image  string
					Env          []struct{ Name, Value string }
					VolumeMounts []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						ReadOnly  bool   `yaml:"readOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name      string
					ConfigMap struct{ Name string } `yaml:"configMap"`
				}
			}
		}
	}
}

// The container finds the file of the ConfigMap under the name that LIMITS has.
func TestManifests(t *testing.T) {
	limits := decode[configMap](t, "limits.yaml")
	deployed := decode[deployment](t, "deployment.yaml")
	if limits.Kind != "ConfigMap" || limits.APIVersion != "v1" || deployed.Kind != "Deployment" || deployed.APIVersion != "apps/v1" {
		t.Errorf("kinds %+v, %+v", limits.Header, deployed.Header)
	}
	pod := deployed.Spec.Template.Spec
	container, volume := pod.Containers[0], pod.Volumes[0]
	mount := container.VolumeMounts[0]
	if volume.ConfigMap.Name != limits.Metadata.Name || mount.Name != volume.Name {
		t.Errorf("the pod mounts %q from %q, the ConfigMap is %q", mount.Name, volume.ConfigMap.Name, limits.Metadata.Name)
	}
	env := container.Env[0]
	if env.Name != "LIMITS" || filepath.Dir(env.Value) != mount.MountPath || limits.Data[filepath.Base(env.Value)] == "" {
		t.Errorf("%s=%s is not a file of the ConfigMap at %s", env.Name, env.Value, mount.MountPath)
	}
}

// mount writes a file as the kubelet does: into a new directory, to which it swaps the
// link ..data by a rename.
func mount(t *testing.T, dir, version, name, content string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, version), 0o755))
	must(os.WriteFile(filepath.Join(dir, version, name), []byte(content), 0o644))
	must(os.Symlink(version, filepath.Join(dir, "..data_tmp")))
	must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
		must(os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
}

// A program takes over a changed ConfigMap while it runs, within a second.
func TestSwap(t *testing.T) {
	const name = "limits.yaml"
	dir := t.TempDir()
	t.Setenv("LIMITS", filepath.Join(dir, name))
	mount(t, dir, "..2026_11_22_10_00", name, "{}")
	limits := decode[configMap](t, name).Data[name]
	synctest.Test(t, func(t *testing.T) {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		limiter := NewLimiter(runtime.NewMemoryStore())
		t.Cleanup(func() { limiter.Close() })
		service := quotes.NewRateLimitedQuotes(quotes.NewExchange(), limiter)
		if _, err := service.Price(t.Context(), "ACME"); err != nil {
			t.Fatal(err)
		}
		mount(t, dir, "..2026_11_22_10_05", name, limits)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if _, err := service.Price(t.Context(), "ACME"); !errors.Is(err, runtime.ErrLimited) {
			t.Errorf("error %v, want a refusal: the max is 1 now", err)
		}
	})
}
