// Stand-in for pulumi-language-nodejs, whose module cannot be had from the Go module proxy.
//
// In: the engine's calls. Out: SDKs, by Pulumi's own generator (pkg/codegen/nodejs), and TypeScript programs, run by
// Pulumi's own Node.js SDK (@pulumi/pulumi/cmd/run) from the project's node_modules. Packages are installed by npm.
// Converting programs, packing and running plugins are refused (gRPC: unimplemented).
//
// Under the name pulumi-language-python it generates SDKs for Python (pkg/codegen/python), and does nothing else.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/cmdutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Version is that of the generator, set by the linker.
var Version string

const (
	alreadyReported = 32 // exit code of a program whose error the user has seen
	maxMessage      = 400 * 1024 * 1024
)

type host struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	engine string
}

func main() {
	engine := ""
	for _, argument := range os.Args[1:] {
		if !strings.HasPrefix(argument, "-") {
			engine = argument
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		cmdutil.Exit(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	pulumirpc.RegisterLanguageRuntimeServer(server, &host{engine: engine})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	parent := os.Getppid()
	go func() {
		for {
			select {
			case <-ended:
				server.Stop()
				return
			case <-time.After(time.Second):
				if os.Getppid() != parent { // the engine is gone
					server.Stop()
					return
				}
			}
		}
	}()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if err := server.Serve(listener); err != nil {
		cmdutil.Exit(err)
	}
}

func (h *host) Handshake(_ context.Context, request *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	if request.EngineAddress != "" {
		h.engine = request.EngineAddress
	}
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (h *host) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: strings.TrimPrefix(Version, "v") + "+standin"}, nil
}

func (h *host) About(context.Context, *pulumirpc.AboutRequest) (*pulumirpc.AboutResponse, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	version, err := exec.Command(node, "--version").Output()
	return &pulumirpc.AboutResponse{Executable: node, Version: strings.TrimSpace(string(version))}, err
}

func (h *host) RuntimeOptionsPrompts(context.Context, *pulumirpc.RuntimeOptionsRequest,
) (*pulumirpc.RuntimeOptionsResponse, error) {
	return &pulumirpc.RuntimeOptionsResponse{}, nil
}

func (h *host) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// packageFile is what package.json says of the Pulumi plugin that a package needs.
type packageFile struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Dependencies map[string]string `json:"dependencies"`
	Pulumi       struct {
		Resource bool   `json:"resource"`
		Name     string `json:"name"`
		Version  string `json:"version"`
		Server   string `json:"server"`
	} `json:"pulumi"`
}

func readPackage(folder string) (packageFile, error) {
	var read packageFile
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	return read, err
}

// dependencies are the packages that the project itself asks for, as they are installed.
func dependencies(info *pulumirpc.ProgramInfo) ([]packageFile, error) {
	project, err := readPackage(info.RootDirectory)
	if err != nil {
		return nil, err
	}
	var found []packageFile
	for name := range project.Dependencies {
		read, err := readPackage(filepath.Join(info.RootDirectory, "node_modules", filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("%s is not installed; run npm ci: %w", name, err)
		}
		found = append(found, read)
	}
	return found, nil
}

func (h *host) GetRequiredPackages(_ context.Context, request *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	found, err := dependencies(request.Info)
	if err != nil {
		return nil, err
	}
	response := &pulumirpc.GetRequiredPackagesResponse{}
	for _, each := range found {
		if !each.Pulumi.Resource {
			continue
		}
		name, version := each.Pulumi.Name, each.Pulumi.Version
		if name == "" {
			name = strings.TrimPrefix(each.Name, "@pulumi/")
		}
		if version == "" {
			version = each.Version
		}
		response.Packages = append(response.Packages, &pulumirpc.PackageDependency{
			Name: name, Kind: "resource", Version: version, Server: each.Pulumi.Server,
		})
	}
	return response, nil
}

func (h *host) GetProgramDependencies(_ context.Context, request *pulumirpc.GetProgramDependenciesRequest,
) (*pulumirpc.GetProgramDependenciesResponse, error) {
	found, err := dependencies(request.Info)
	response := &pulumirpc.GetProgramDependenciesResponse{}
	for _, each := range found {
		response.Dependencies = append(response.Dependencies,
			&pulumirpc.DependencyInfo{Name: each.Name, Version: each.Version})
	}
	return response, err
}

func (h *host) InstallDependencies(request *pulumirpc.InstallDependenciesRequest,
	stream pulumirpc.LanguageRuntime_InstallDependenciesServer,
) error {
	said, err := npm(request.Info.RootDirectory, "install")
	if sent := stream.Send(&pulumirpc.InstallDependenciesResponse{Stdout: said}); sent != nil {
		return sent
	}
	return err
}

// Link makes the generated SDK a dependency of the project; InstallDependencies comes after it.
func (h *host) Link(_ context.Context, request *pulumirpc.LinkRequest) (*pulumirpc.LinkResponse, error) {
	project, err := readPackage(request.Info.RootDirectory)
	if err != nil {
		return nil, err
	}
	for _, each := range request.Packages {
		sdk, err := readPackage(filepath.Join(request.Info.RootDirectory, each.Path))
		if err != nil {
			return nil, err
		}
		place := "file:" + filepath.ToSlash(each.Path)
		if project.Dependencies[sdk.Name] == place {
			continue
		}
		setting := fmt.Sprintf("dependencies[%s]=%s", sdk.Name, place)
		if _, err := npm(request.Info.RootDirectory, "pkg", "set", setting); err != nil {
			return nil, err
		}
	}
	return &pulumirpc.LinkResponse{}, nil
}

func npm(folder string, arguments ...string) ([]byte, error) {
	command := exec.Command("npm", append(arguments, "--no-audit", "--no-fund", "--loglevel=error")...)
	command.Dir = folder
	said, err := command.CombinedOutput()
	if err != nil {
		return said, fmt.Errorf("npm %s in %s: %w\n%s", arguments[0], folder, err, said)
	}
	return said, nil
}

func (h *host) GeneratePackage(_ context.Context, request *pulumirpc.GeneratePackageRequest,
) (*pulumirpc.GeneratePackageResponse, error) {
	loader, err := schema.NewLoaderClient(request.LoaderTarget)
	if err != nil {
		return nil, err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal([]byte(request.Schema), &spec); err != nil {
		return nil, err
	}
	pkg, problems, err := schema.BindSpec(spec, loader, schema.ValidationOptions{AllowDanglingReferences: true})
	if err != nil {
		return nil, err
	}
	if problems.HasErrors() {
		return nil, problems
	}
	var files map[string][]byte
	if filepath.Base(os.Args[0]) == "pulumi-language-python" {
		files, err = python.GeneratePackage("pulumi", pkg, request.ExtraFiles, loader)
	} else {
		files, err = nodejs.GeneratePackage(
			"pulumi", pkg, request.ExtraFiles, request.LocalDependencies, request.Local, loader)
	}
	if err != nil {
		return nil, err
	}
	for name, content := range files {
		path := filepath.Join(request.Directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return nil, err
		}
	}
	return &pulumirpc.GeneratePackageResponse{}, nil
}

func (h *host) Run(ctx context.Context, request *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	info := request.Info
	runner := filepath.Join(info.RootDirectory, "node_modules", "@pulumi", "pulumi", "cmd", "run")
	if _, err := os.Stat(runner); err != nil {
		return nil, fmt.Errorf("@pulumi/pulumi is not installed in %s; run npm ci", info.RootDirectory)
	}
	config, err := json.Marshal(request.Config)
	if err != nil {
		return nil, err
	}
	secrets, err := json.Marshal(request.ConfigSecretKeys)
	if err != nil {
		return nil, err
	}
	arguments := []string{
		runner,
		"--monitor=" + request.MonitorAddress, "--engine=" + h.engine,
		"--organization=" + request.Organization, "--project=" + request.Project, "--stack=" + request.Stack,
		"--root-directory=" + info.RootDirectory, "--pwd=" + info.ProgramDirectory,
		"--parallel=" + strconv.Itoa(int(request.Parallel)),
	}
	if request.DryRun {
		arguments = append(arguments, "--dry-run")
	}
	command := exec.CommandContext(ctx, "node", append(arguments, info.EntryPoint)...)
	command.Dir = info.ProgramDirectory
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(),
		"PULUMI_NODEJS_TYPESCRIPT=true", "PULUMI_CONFIG="+string(config), "PULUMI_CONFIG_SECRET_KEYS="+string(secrets))
	err = command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &pulumirpc.RunResponse{}, nil
	case errors.As(err, &exit) && exit.ExitCode() == alreadyReported:
		return &pulumirpc.RunResponse{Bail: true}, nil
	default:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("node: %v", err)}, nil
	}
}
