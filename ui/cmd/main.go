// Package cmd is the command tree of rdma-setup: one file per command. It and the packages beneath it are the only place that
// builds concrete backends.
package cmd

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdma-setup/rdma-setup/backends"
	"github.com/rdma-setup/rdma-setup/ui/cmd/console"
)

// version is set by the build (-ldflags -X).
var version = "dev"

// Main runs the command line of this process and returns its exit code.
func Main() int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(75) // a thousand hosts with ten thousand VMs in 150 MB instead of 190, for no measurable CPU
	}
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		for range quit { // Ctrl-\ ends a command as Ctrl-C does, without Go's list of goroutines
			_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		}
	}()
	e := console.OSEnv()
	e.Restart = restart
	return Run(context.Background(), e, os.Args[1:])
}

// restart implements console.Env.Restart.
func restart(setting string) {
	program, err := os.Executable()
	if with, is := withRuntime(os.Environ(), setting); err == nil && !is {
		_ = syscall.Exec(program, os.Args, with)
	}
}

// withRuntime returns an environment with a setting NAME=VALUE in GODEBUG; is reports that it has one of this name.
func withRuntime(env []string, setting string) (with []string, is bool) {
	const variable = "GODEBUG="
	name, _, _ := strings.Cut(setting, "=")
	settings := ""
	for _, line := range env {
		if value, ok := strings.CutPrefix(line, variable); ok {
			settings = value
			continue
		}
		with = append(with, line)
	}
	if strings.Contains(","+settings, ","+name+"=") {
		return env, true
	}
	return append(with, variable+strings.TrimLeft(settings+","+setting, ",")), false
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, e *console.Env, args []string) int {
	own := *e
	own.Version, own.Stderr = version, console.Shared(e.Stderr)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	interrupted := console.Prompts(&own, cancel)
	root := newRootCmd(&own)
	// cobra keeps these functions, and with them the environment and all that it refers to, for the life of the process, in which
	// rehearsals and tests run many commands.
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		completeFlags(root, &own)
	}
	root.SetArgs(args)
	begun, begin := false, root.PersistentPreRun
	root.PersistentPreRun = func(c *cobra.Command, args []string) {
		begun = true
		begin(c, args)
	}
	c, err := root.ExecuteContextC(ctx)
	if err != nil && !begun {
		err = misused(&own, c, args, err)
	}
	if interrupted() {
		if backends.KindOf(err) != backends.KindInterrupted {
			err = backends.Interruptedf("", "", "interrupted at a prompt")
		}
		console.Explain(e.Stderr, err)
		return console.ExitInterrupted
	}
	if err = withoutRun(c, err); err != nil {
		console.Explain(e.Stderr, err)
	}
	return console.ExitCode(err)
}

// withoutRun corrects the hint of a command that began no run: there is none to resume.
func withoutRun(c *cobra.Command, err error) error {
	switch c.Name() {
	case c.Root().Name(), "resume", "rollback", "attach":
		return err
	case "apply":
		if _, ran := errors.AsType[*console.CodeError](err); ran {
			return err
		}
	}
	hint := backends.HintOf(err)
	if text := strings.ReplaceAll(hint, "run rdma-setup resume", "run the same command again"); text != hint {
		return backends.WithHint(err, text)
	}
	return err
}
