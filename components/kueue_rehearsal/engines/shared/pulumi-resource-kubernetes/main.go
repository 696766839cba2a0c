// Pulumi's Kubernetes provider: its own main package embeds files that its build makes, and its module does not have.
//
// It ends with the engine that started it, also when that is killed. The provider alone would look every five minutes.
package main

import (
	_ "embed"
	"os"
	"strings"
	"time"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

func main() {
	go endWith(os.Getppid())
	provider.Serve("kubernetes", strings.TrimPrefix(version.Version, "v"), schema, []byte("{}"))
}

func endWith(engine int) {
	for os.Getppid() == engine {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}
